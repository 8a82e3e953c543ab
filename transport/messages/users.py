"""Messages within a controller: changes of users of SCRAM, which only Kafka's clients ask for."""

from __future__ import annotations

from typing import ClassVar

from transport.errors import Fault
from transport.messages.common import MAX_LISTED_TOPICS, Message, Request


class UserChanges(Message, frozen=True):
    """The mechanisms whose credentials a user loses, and the new ones as settings by mechanism."""

    user: str
    removed: tuple[str, ...]
    added: tuple[tuple[str, str], ...]


class AlterScramUsersResponse(Message, frozen=True):
    """The reason why the changes of a user are not made, or None for each user."""

    users: tuple[tuple[str, Fault | None], ...]


class AlterScramUsersRequest(Request[AlterScramUsersResponse], frozen=True):
    """Change users."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    users: tuple[UserChanges, ...]
