"""The results of an election of the controller."""

from __future__ import annotations

from attrs import frozen


@frozen
class Won:
    """We are the controller at `epoch`; `version`, the dataVersion of `/controller_epoch`, is the fencing token."""

    epoch: int
    version: int


@frozen
class Standby:
    """Another process is the controller or, if `controller_id` is None, nobody is and we do not stand for election."""

    controller_id: int | None
    reason: str = ""
    """The reason why we do not stand; empty if another controller of ours is in office."""
