"""Check that no broker is told of a replica on a controller, which holds no data.

Brokers of Kafka's take controllers for brokers, and place topics on them that they create themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.frames import ControlRequest
from simulator.safety.exemptions import Exemptions
from simulator.settings import CONTROLLERS
from transport.messages import LeaderAndIsrRequest, UpdateMetadataRequest


def on_controllers(broker_id: int, request: ControlRequest, exempt: Exemptions) -> Iterator[str]:
    """Check an order of a controller, as the broker takes it from the network."""
    match request:
        case LeaderAndIsrRequest(partitions=items):
            states = [item.state for item in items]
        case UpdateMetadataRequest(partitions=told):
            states = list(told)
        case _:
            return
    for state in states:
        if any(r in CONTROLLERS for r in state.replicas) and not exempt.has_topic(state.topic):
            yield f"broker {broker_id} was told that {state.tp} is on {state.replicas}, not all of which are brokers"
