from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_bridge.plan import PlanError, PlanRequest
from spark_bridge.snapshot import Broker, Partition, parse_snapshot, read_snapshot


def snapshot(*partitions: object, brokers: object = None) -> dict[str, Any]:
    return {"brokers": brokers or [{"id": 1, "rack": None}], "partitions": list(partitions)}


def row(**fields: object) -> dict[str, object]:
    return {"topic": "orders", "partition": 3, "replicas": [1, 2], **fields}


def test_takes_what_planning_needs_and_ignores_the_rest() -> None:
    read = parse_snapshot(
        {
            "controller": {"id": 101},
            "brokers": [{"id": 1, "host": "h", "port": 1, "rack": "a"}, {"id": 2}],
            "partitions": [row(leader=1, isr=[1], leader_epoch=7)],
        }
    )
    assert read.brokers == (Broker(1, "a"), Broker(2, None))
    assert read.partitions == (Partition("orders", 3, (1, 2)),)


def test_a_partition_in_the_middle_of_a_move_counts_with_its_target() -> None:
    moving = row(replicas=[4, 5, 1, 2], adding_replicas=[4, 5], removing_replicas=[1, 2])
    assert parse_snapshot(snapshot(moving)).partitions[0].replicas == (4, 5)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "no list 'brokers' in it: give the output of `klamm state dump`"),
        ({"brokers": [], "partitions": {}}, "no list 'partitions' in it: give the output of `klamm state dump`"),
        (snapshot(brokers=[7]), "brokers[0]: must be an object, not 7"),
        (snapshot(brokers=[{"id": True}]), "brokers[0]: id must be a number of 0 or more, not True"),
        (snapshot(brokers=[{"id": 1, "rack": 2}]), "brokers[0]: rack must be a string or null, not 2"),
        (snapshot(brokers=[{"id": 1}, {"id": 1}]), "brokers: id 1 is there twice"),
        (snapshot(row(), row(topic="")), "partitions[1]: topic must be a name, not ''"),
        (snapshot(row(partition="3")), "partitions[0]: partition must be a number of 0 or more, not '3'"),
        (
            snapshot(row(replicas=[1, 2**31])),
            "partitions[0] (orders-3): replicas must be a list of broker ids, not [1, 2147483648]",
        ),
        (snapshot(row(replicas=[1, 1])), "partitions[0] (orders-3): replicas names a broker twice: [1, 1]"),
        (snapshot(row(replicas=[])), "partitions[0] (orders-3): it has no replicas"),
        (snapshot(row(removing_replicas=[1, 2])), "partitions[0] (orders-3): it has no replicas"),
        (snapshot(row(), row()), "partitions: orders-3 is there twice"),
    ],
)
def test_says_what_is_wrong_and_where(document: object, line: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    with pytest.raises(PlanError) as caught:
        read_snapshot(path)
    assert str(caught.value) == f"snapshot {path}: {line}"


def test_says_that_a_file_is_missing_or_not_json(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with pytest.raises(PlanError, match=r"^snapshot \S+: No such file or directory$"):
        read_snapshot(path)
    path.write_text("{")
    with pytest.raises(PlanError, match=r"^snapshot \S+: not JSON: .*line 1"):
        read_snapshot(path)


def test_a_request_survives_its_json() -> None:
    request = PlanRequest("s.json", (3, 7))
    assert PlanRequest.from_json(request.to_json()) == request


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"snapshot": 1, "remove_brokers": []}', '{"snapshot": "s"}'])
def test_what_is_not_a_request_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(PlanError, match=r"^request: .*$"):
        PlanRequest.from_json(text.encode())
