"""The brokers of a plan, from the snapshot and a table that adds to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import evolve

from spark_bridge.errors import PlanError
from spark_bridge.inputs.columns import ROW, UNKNOWN, WRONG
from spark_bridge.inputs.files import Part
from spark_bridge.model.brokers import Broker, Brokers, BrokerState

_INT32_MAX: Final = 2**31 - 1


def all_brokers(
    listed: Iterable[Part],
    added: Iterable[Part] | None,
    assigned: Iterable[int],
) -> Brokers:
    """Return the brokers of a plan. A bad row is rejected, because a broker that is skipped would be emptied.

    Args:
        listed: The brokers in the snapshot, as raw tables of `LISTED_BROKERS`; Kafka's own JSON has none.
        added: A table of brokers; its values take precedence, except empty ones.
        assigned: All ids that have a replica.

    Returns:
        The brokers that the snapshot lists are live; if it lists none, those of the table are; without a table, all
        that have replicas. Other brokers in the table or with replicas are dead, unless the table gives a state.

    Raises:
        PlanError: A row is bad.
    """
    brokers = _merged({}, listed, BrokerState.LIVE)
    if added is not None:
        brokers = _merged(brokers, added, BrokerState.DEAD if brokers else BrokerState.LIVE)
    if not brokers:
        return Brokers.of(Broker(id_) for id_ in sorted(set(assigned)))
    return Brokers.of(brokers.values(), assigned)


def _merged(known: dict[int, Broker], parts: Iterable[Part], new: BrokerState) -> dict[int, Broker]:
    """Return the known brokers updated by rows; new ones get state `new` unless the row gives one."""
    brokers = dict(known)
    seen: set[int] = set()
    for where, row in _rows(parts):
        _check(where, row)
        id_ = row["id"]
        if id_ in seen:
            raise PlanError(f"{where}: broker {id_} is a duplicate")
        seen.add(id_)
        said = {name: row[name] for name in ("rack", "capacity", "disk") if row[name] not in {None, ""}}
        if row["state"]:
            said["state"] = state = BrokerState(row["state"])
            # A broker that the snapshot does not list is down, unless the table says that it is live.
            said["is_down"] = state in {BrokerState.EXCLUDED, BrokerState.DRAINING} and (
                id_ not in brokers and new is BrokerState.DEAD
            )
        brokers[id_] = evolve(brokers.get(id_, Broker(id_, state=new)), **said)
    return brokers


def _rows(parts: Iterable[Part]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in parts:
        for table in part.tables():
            for row in table.to_pylist():
                yield f"{part.place.file}: {part.place.unit} {row[ROW]}", row


def _check(where: str, row: dict[str, Any]) -> None:
    name = f"{where}: broker {row['id']}"
    if wrong := row[UNKNOWN] or row[WRONG]:
        raise PlanError(f"{where}: {wrong}")
    if row["id"] is None or not 0 <= row["id"] <= _INT32_MAX:
        raise PlanError(f"{where}: id must be a number from 0 to {_INT32_MAX}, not {row['id']}")
    if row["capacity"] is not None and not (0 < row["capacity"] < math.inf):
        raise PlanError(f"{name}: capacity must be a number above 0, not {row['capacity']}")
    if row["disk"] is not None and row["disk"] < 0:
        raise PlanError(f"{name}: disk must be a number of bytes, not {row['disk']}")
    if row["state"] and row["state"] not in set(BrokerState):
        raise PlanError(f"{name}: state must be {', '.join(BrokerState)}, not {row['state']!r}")
