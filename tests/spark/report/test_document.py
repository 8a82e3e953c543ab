"""A plan's summary as JSON."""

from __future__ import annotations

import orjson
from attrs import evolve

from spark_bridge.model.summary import Summary
from spark_bridge.process.document import from_document
from spark_bridge.report.document import document
from tests.spark.report.clusters import drain, growth, still, without_sizes


def test_a_summary_survives_json() -> None:
    made = growth(6, 1, 2, 1)
    assert made.rack_flows
    assert from_document(Summary, orjson.loads(orjson.dumps(made.to_document())), "summary") == made


def test_the_document_has_what_a_reader_would_derive() -> None:
    made = evolve(drain(6, 1, 2, 1), moved_bytes=150, lower_bound=100)
    read = orjson.loads(orjson.dumps(document(made)))
    assert read["ratio"] == 1.5
    assert [rack["rack"] for rack in read["racks"]] == ["rack-00", "rack-01"]
    assert [rack["brokers"] for rack in read["racks"]] == [3, 3]
    assert sum(rack["after"]["bytes"] for rack in read["racks"]) == sum(b.after.bytes for b in made.brokers)
    assert {"broker", "measure", "load", "share", "excess", "why"} == read["hottest"][0].keys()


def test_the_ratio_of_nothing_to_nothing_is_one_and_to_nothing_is_none() -> None:
    idle = still(growth(6, 1, 2, 1))
    assert document(idle)["ratio"] == 1.0
    assert document(evolve(idle, moved_bytes=5))["ratio"] is None


def test_without_sizes_replicas_are_compared() -> None:
    made = without_sizes(growth(6, 1, 2, 1))
    assert document(evolve(made, moved_replicas=30, lower_bound=20))["ratio"] == 1.5
