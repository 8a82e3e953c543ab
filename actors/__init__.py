"""The actor runtime on trio: mailboxes, supervision, event queue and channel. Independent of Kafka."""

from __future__ import annotations

from actors.actor import Actor as Actor
from actors.backoff import Backoff as Backoff
from actors.channel import Backlog as Backlog
from actors.channel import Channel as Channel
from actors.channel import ChannelStatistics as ChannelStatistics
from actors.channel import PeerConnection as PeerConnection
from actors.event_queue import Event as Event
from actors.event_queue import EventObserver as EventObserver
from actors.event_queue import EventQueue as EventQueue
from actors.event_queue import EventStatistics as EventStatistics
from actors.mailbox import Mailbox as Mailbox
from actors.mailbox import MailboxClosed as MailboxClosed
from actors.mailbox import MailboxFull as MailboxFull
from actors.supervision import supervise as supervise
