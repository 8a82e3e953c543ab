"""Check that at most one controller's writes and orders take effect per controller epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

import trio
from attrs import define, field

from simulator.frames import ControlRequest
from simulator.safety.partitions import PartitionChange, is_controller
from simulator.settings import host_of
from simulator.store.durable import Durable
from transport.store import paths
from transport.store.protocol import Check, Create, Delete, Op, Set

_OWNED: Final = (f"{paths.TOPICS}/", f"{paths.STRAYS}/", "/admin/")
"""Paths that, among the controllers, only the one in office may write."""


@define
class Controllership:
    """The controller in office, according to the last increment of `/controller_epoch`."""

    epoch: int = field(default=0, init=False)
    holder: str = field(default="", init=False)
    _holders: dict[int, str] = field(factory=dict, init=False)
    _elected_at: dict[int, float] = field(factory=dict, init=False)

    def elected_at(self, epoch: int) -> float:
        """Return when the controller of an epoch was elected; infinite if nobody was."""
        return self._elected_at.get(epoch, inf)

    def has_held(self, host: str) -> bool:
        """Return whether a controller has ever been in office."""
        return host in self._holders.values()

    def committed(self, host: str, ops: Sequence[Op], durable: Durable) -> Iterator[str]:
        """Yield the writes of a commit that its controller may not make. Called right after the commit took effect."""
        if not is_controller(host):
            return
        for op in ops:
            if isinstance(op, Check):
                continue
            if op.path == paths.CONTROLLER_EPOCH:
                yield from self._raised(host, op, durable)
            elif host != self.holder and _is_owned(op):
                holder = self.holder or "no controller"
                yield f"{host} wrote {op.path}, though {holder} holds office at epoch {self.epoch}"

    def changed(self, change: PartitionChange) -> Iterator[str]:
        """Check the controller epoch of a leadership that a controller wrote."""
        before, after = change.before, change.after
        if not change.is_a_controllers or after is None or after.leadership is None:
            return
        written = after.leadership.controller_epoch
        if written != self.epoch and (before is None or before.leadership != after.leadership):
            yield f"{change.host} wrote {change.tp} with controller epoch {written}, though {self.epoch} is in effect"

    def ordered(self, controller_host: str, request: ControlRequest) -> Iterator[str]:
        """Check that the controller that sent an order holds the order's controller epoch."""
        holder = self._holders.get(request.controller_epoch)
        if holder != controller_host:
            kind = type(request).__name__
            yield f"{controller_host} sent {kind} at epoch {request.controller_epoch} of {holder or 'no controller'}"

    def _raised(self, host: str, op: Create | Set | Delete, durable: Durable) -> Iterator[str]:
        if isinstance(op, Delete):
            yield f"{host} deleted {op.path}"
            return
        epoch = int(op.data)
        expected = 0 if isinstance(op, Create) else self.epoch + 1
        if epoch != expected:
            yield f"{host} wrote controller epoch {epoch} where {expected} was next"
        self.epoch = epoch
        # Creating the znode puts nobody in office; only an increment does.
        if isinstance(op, Create):
            return
        self.holder = self._holders[epoch] = host
        self._elected_at[epoch] = trio.current_time()
        elected = durable.controller()
        if elected is None or host_of(elected) != host:
            yield f"{host} raised the controller epoch to {epoch} while controller {elected} holds /controller"


def _is_owned(op: Create | Set | Delete) -> bool:
    # Every candidate may create /controller; only the controller in office may delete it.
    if op.path == paths.CONTROLLER:
        return isinstance(op, Delete)
    return op.path.startswith(_OWNED) and op.path not in paths.PERSISTENT
