"""Reasons why moves wait: as data, and in words."""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import frozen


class Reason(Enum):
    """The reasons for which a move waits. All but DEAD_IN_FLIGHT are of moves that have not begun."""

    IN_ALL = "in_all"
    INTO = "into"
    OUT_OF = "out_of"
    LEADERS = "leaders"
    BYTES = "bytes"
    ROOM = "room"
    ASKED = "asked"
    DEAD = "dead"
    DEAD_IN_FLIGHT = "dead_in_flight"
    NO_LEADER = "no_leader"
    UNTHROTTLED = "unthrottled"
    HELD = "held"


@frozen
class Wait:
    """A wait of a move, at `broker` if it is one: `most` is the limit that is reached.

    For room, `has` is what fits and `most` what is needed, in bytes. `text` is the reason of a hold, or where room is.
    """

    reason: Reason
    broker: int | None = None
    has: int = 0
    most: int = 0
    text: str = ""

    def __str__(self) -> str:
        """Return the wait in words."""
        return _WORDS[self.reason].format(self, "" if self.most == 1 else "s")


_WORDS: Final = {
    Reason.IN_ALL: "{0.most:,} move{1} in flight, the most at once",
    Reason.INTO: "broker {0.broker} receives {0.most:,} replica{1}, the most at once",
    Reason.OUT_OF: "broker {0.broker} sends {0.most:,} replica{1}, the most at once",
    Reason.LEADERS: "broker {0.broker} gives up {0.most:,} leader{1}, the most at once",
    Reason.BYTES: "as many of {0.most:,} bytes are in flight that it has to wait",
    Reason.ROOM: "broker {0.broker} has room for {0.has:,} bytes{0.text}, and it needs {0.most:,}",
    Reason.ASKED: "broker {0.broker} has been asked for the room on its disks",
    Reason.DEAD: "broker {0.broker} is not alive",
    Reason.DEAD_IN_FLIGHT: "broker {0.broker} is not alive, and moves in flight end once it is in their ISRs",
    Reason.NO_LEADER: "it has no leader to copy from",
    Reason.UNTHROTTLED: "{0.text}",
    Reason.HELD: "{0.text}",
}
