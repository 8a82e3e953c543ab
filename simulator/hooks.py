"""The events that the world of a simulation passes on to the trace and to the checks."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from simulator.frames import control_request, request_to_controller
from simulator.kafka.frames import is_kafkas
from simulator.kafka.late_orders import Latest
from simulator.safety.invariants import Safety
from simulator.steps import Steps
from simulator.trace import Trace
from transport.store.protocol import Committed, Op


@define
class Hooks:
    """Traces and checks the store's commits and the network's frames."""

    trace: Trace
    safety: Safety
    steps: Steps
    _latest: Latest[tuple[str, str]] = field(factory=Latest, init=False)
    """The newest connections with orders to brokers of Kafka's."""

    def committed(self, host: str, session_id: int, ops: Sequence[Op], committed: Committed) -> None:
        """Observe a commit of the store."""
        self.trace.add("commit", host or "zookeeper", f"{committed.zxid} {session_id} {list(ops)}")
        self.safety.committed(host, ops, committed)

    def delivered(self, source: str, destination: str, connection_id: int, chunk: bytes) -> None:
        """Observe a frame that its receiver takes from the network."""
        self.trace.add("frame", f"{source}>{destination}", chunk)
        self.safety.delivered(source, destination, connection_id, chunk)
        if source.startswith("controller-") and destination.startswith("broker-"):
            broker_id = int(destination.removeprefix("broker-"))
            request = control_request(chunk, self.safety.disks[broker_id].id_of)
            if request is not None and self._is_obeyed(source, destination, connection_id, chunk):
                self.safety.ordered(source, broker_id, request)
                self.safety.decisions.ordered(connection_id, broker_id, chunk, request)
                self.steps.arrived(int(source.removeprefix("controller-")), broker_id)
        elif destination.startswith("controller-"):
            asked = request_to_controller(chunk, self.safety.name_of)
            if asked is not None:
                self.safety.asked(asked)
                self.safety.decisions.received(destination, asked)
            elif source.startswith("broker-"):
                self.safety.decisions.answered(destination, connection_id, chunk)

    def _is_obeyed(self, source: str, destination: str, connection_id: int, order: bytes) -> bool:
        """Return whether a broker does not turn an order away as late; ours do that by the order's number."""
        return not is_kafkas(order) or self._latest.admit((source, destination), connection_id)
