"""The actor runtime on trio: mailboxes, supervision, event queue and channel. Independent of Kafka."""

from __future__ import annotations

from actors.actor import Actor
from actors.backoff import Backoff
from actors.channel import Backlog, Caller, Channel, ChannelStatistics
from actors.event_queue import Event, EventObserver, EventQueue, EventStatistics
from actors.mailbox import Mailbox, MailboxClosed, MailboxFull
from actors.supervision import supervise

__all__ = [
    "Actor",
    "Backlog",
    "Backoff",
    "Caller",
    "Channel",
    "ChannelStatistics",
    "Event",
    "EventObserver",
    "EventQueue",
    "EventStatistics",
    "Mailbox",
    "MailboxClosed",
    "MailboxFull",
    "supervise",
]
