"""The actor runtime on trio: mailboxes, supervision, event queue and channel. Independent of Kafka."""

from __future__ import annotations

from actors.actor import Actor as Actor
from actors.backoff import Backoff as Backoff
from actors.channel import (
    Backlog as Backlog,
    Channel as Channel,
    ChannelStatistics as ChannelStatistics,
    PeerConnection as PeerConnection,
)
from actors.event_queue import (
    Event as Event,
    EventObserver as EventObserver,
    EventQueue as EventQueue,
    EventStatistics as EventStatistics,
)
from actors.mailbox import Mailbox as Mailbox, MailboxClosed as MailboxClosed, MailboxFull as MailboxFull
from actors.supervision import supervise as supervise
