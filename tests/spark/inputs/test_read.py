from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_bridge.errors import PlanError
from spark_bridge.inputs.json_words import CUT_OFF
from spark_bridge.inputs.read import ClusterInputs, read_cluster
from spark_bridge.inputs.sources import OnBadRows, Sources
from spark_bridge.model.brokers import Broker, BrokerState

CURE = "correct it, or leave such rows out with --set-aside-bad-rows"


def row(**fields: object) -> dict[str, object]:
    return {"topic": "orders", "partition": 3, "replicas": [1, 2], **fields}


def dumped(*partitions: object, brokers: object = None) -> dict[str, Any]:
    return {"controller": {"id": 101}, "brokers": brokers or [{"id": 1}, {"id": 2}], "partitions": list(partitions)}


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read(tmp_path: Path, snapshot: object, *loads: str, aside: bool = False) -> ClusterInputs:
    files = [write(tmp_path / f"loads-{n}", text) for n, text in enumerate(loads)]
    on_bad_rows = OnBadRows.SET_ASIDE if aside else OnBadRows.REFUSE
    return read_cluster(Sources(write(tmp_path / "s.json", snapshot), tuple(files), None, on_bad_rows))


def refusal(tmp_path: Path, snapshot: object, *loads: str) -> str:
    with pytest.raises(PlanError) as caught:
        read(tmp_path, snapshot, *loads)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_takes_what_planning_needs_in_order_and_ignores_the_rest(tmp_path: Path) -> None:
    cluster = read(
        tmp_path,
        dumped(
            row(partition=10, leader=-1),
            row(leader=2, isr=[1], leader_epoch=7),
            row(topic="a", min_insync_replicas=2),
            brokers=[{"id": 1, "host": "h", "port": 1, "rack": "a"}, {"id": 2}],
        ),
    )
    assert cluster.brokers.rows == (Broker(1, "a"), Broker(2))
    unknown = {"topic_id": None, "min_insync_replicas": None, "bytes": None, "bytes_in": None, "bytes_out": None}
    assert cluster.partitions.to_pylist() == [
        row(topic="a", leader=None) | unknown | {"min_insync_replicas": 2},
        row(leader=2) | unknown,
        row(partition=10, leader=None) | unknown,
    ]
    assert (cluster.set_aside, cluster.unknown_loads) == ({}, 3)


def test_a_partition_in_the_middle_of_a_move_counts_with_its_target(tmp_path: Path) -> None:
    moving = row(replicas=[4, 5, 1, 2], adding_replicas=[4, 5], removing_replicas=[1, 2], leader=1)
    kept = read(tmp_path, dumped(moving, row(partition=4))).partitions.to_pylist()
    assert [(p["replicas"], p["leader"]) for p in kept] == [([4, 5], None), ([1, 2], None)]


def test_whoever_has_replicas_and_is_not_listed_is_dead(tmp_path: Path) -> None:
    assert read(tmp_path, dumped(row(replicas=[2, 9]))).brokers.rows[2] == Broker(9, state=BrokerState.DEAD)


def test_kafkas_own_json_makes_all_live_that_have_replicas(tmp_path: Path) -> None:
    assert read(tmp_path, {"version": 1, "partitions": [row(replicas=[2, 9])]}).brokers.rows == (Broker(2), Broker(9))


@pytest.mark.parametrize(
    ("loads", "measured"),
    [
        ("topic,partition,bytes,bytes_in\norders,3,5,\n", (5, None, None)),
        ('"bytes_out","partition","topic","log_dirs"\n1.5,3,"orders","a, b"\n', (None, None, 2)),
        ('[{"topic": "orders", "partition": 3, "bytes": 7, "bytes_in": 0.4}]', (7, 0, None)),
        ('{"topic": "orders", "partition": 3, "bytes": 7}\n\n', (7, None, None)),
    ],
)
def test_loads_of_each_text_format(tmp_path: Path, loads: str, measured: tuple[int | None, ...]) -> None:
    [partition] = read(tmp_path, dumped(row()), loads).partitions.to_pylist()
    assert (partition["bytes"], partition["bytes_in"], partition["bytes_out"]) == measured


def test_what_a_later_file_says_counts(tmp_path: Path) -> None:
    loads = ("topic,partition,bytes,bytes_in\norders,3,5,6\n", "topic,partition,bytes\norders,3,4\n")
    [partition] = read(tmp_path, dumped(row()), *loads).partitions.to_pylist()
    assert (partition["bytes"], partition["bytes_in"]) == (4, 6)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ("nonsense", "s.json: not JSON: give the output of `klamm state dump`"),
        ("", "s.json: it is empty"),
        ("{}", "s.json: no list 'partitions' in it: give the output of `klamm state dump`"),
        ('{\n"partitions":\n [{"topic" "a"}]}', "s.json: line 3: not JSON: Expecting ':' delimiter"),
        ('{\n"partitions":\n [{"a":1},\n{"topic" "a"}]}\n\n\n', "s.json: line 4: not JSON: Expecting ':' delimiter"),
        ('{\n"partitions":\n [', f"s.json: line 3: not JSON: {CUT_OFF}"),
        ('{\n"partitions":\n [{"topic":"ord', f"s.json: line 3: not JSON: {CUT_OFF}"),
        ('{\n"partitions":\n [{"topic":"a"}', f"s.json: line 3: not JSON: {CUT_OFF}"),
        (dumped(brokers=[7]), "s.json: entry 1: a row must be an object, not 7"),
        (dumped(brokers=[{"id": True}]), "s.json: entry 1: id must be a whole number, not True"),
        (dumped(brokers=[{"id": 1, "rack": 2}]), "s.json: entry 1: rack must be a string, not 2"),
        (dumped(brokers=[{"id": 1}, {"id": 1}]), "s.json: entry 2: broker 1 is a duplicate"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, document: object, line: str) -> None:
    assert refusal(tmp_path, document) == line


BAD_ROWS = [
    (7, "a row must be an object, not 7", "not readable"),
    (row(partition="3"), "partition must be a whole number, not '3'", "not readable"),
    (row(replicas=[1, 1.5]), "replicas must be a list of broker ids, not [1, 1.5]", "not readable"),
    (
        row(topic="a b"),
        "topic must be up to 249 letters, digits, '.', '_' and '-', not 'a b'",
        "not a topic name",
    ),
    (row(topic=None), "topic must be up to 249 letters, digits, '.', '_' and '-', not None", "not a topic name"),
    (row(partition=-1), "partition of orders must be a number from 0 to 2147483647, not -1", "not a partition number"),
    (
        row(replicas=[1, 2**31]),
        "orders-3: a broker id must be from 0 to 2147483647: replicas [1, 2147483648], leader None",
        "not a broker id",
    ),
    (
        row(leader=-2),
        "orders-3: a broker id must be from 0 to 2147483647: replicas [1, 2], leader -2",
        "not a broker id",
    ),
    (row(replicas=[1, 2, 1]), "orders-3: duplicate broker: replicas [1, 2, 1]", "duplicate replica"),
    (row(replicas=[]), "orders-3: it has no replicas", "no replicas"),
    (row(removing_replicas=[2, 1]), "orders-3: it has no replicas", "no replicas"),
    (row(partition=0), "orders-0 is a duplicate", "duplicate row"),
]


@pytest.mark.parametrize(("bad", "line", "fault"), BAD_ROWS)
def test_a_bad_row_of_a_snapshot_is_named_or_counted(tmp_path: Path, bad: object, line: str, fault: str) -> None:
    document = dumped(row(partition=0), bad, row(partition=1))
    assert refusal(tmp_path, document) == f"s.json: entry 2: {line}: {CURE}"
    kept = read(tmp_path, document, aside=True)
    assert kept.partitions["partition"].to_pylist() == [0, 1]
    assert kept.set_aside == {fault: 1}


def test_only_the_first_bad_row_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    document = dumped(row(), row(), row(topic="?"), row(replicas=[]), row())
    assert refusal(tmp_path, document) == f"s.json: entry 2: orders-3 is a duplicate (and 3 more bad rows): {CURE}"
    assert read(tmp_path, document, aside=True).set_aside == {
        "duplicate row": 2,
        "not a topic name": 1,
        "no replicas": 1,
    }


def test_of_a_partition_that_is_there_often_the_first_row_is_kept(tmp_path: Path) -> None:
    rows = [row(partition=n % 7, replicas=[1 + n]) for n in range(700)]
    kept = read(tmp_path, dumped(*rows), aside=True)
    assert kept.partitions["replicas"].to_pylist() == [[1 + n] for n in range(7)]
    assert kept.set_aside == {"duplicate row": 693}


@pytest.mark.parametrize(
    ("loads", "line"),
    [
        ("a;b\n1;2\n", "loads-0: its columns are separated by semicolons: separate them by commas"),
        ("topic,partition,bytes\n\norders,x,1\n", "loads-0: line 3: partition must be a whole number, not 'x'"),
        ("topic,partition,bytes\norders,3\n", "loads-0: line 2: 3 columns expected: 'orders,3'"),
        ('topic,partition\n"orders,3\norders,3\n', "loads-0: line 2: 2 columns expected: '\"orders,3'"),
        ('topic,partition\norders,"3\n', "loads-0: line 2: 2 columns expected: 'orders,\"3'"),
        ("topic,partition,bytes\norders,3,-1\n", "loads-0: line 2: orders-3: a size or rate must be a number from 0"),
        ("topic,partition,bytes_in\norders,3,nan\n", "loads-0: line 2: orders-3: a size or rate must be a number"),
        ("topic,partition\norders,3\norders,4\n", f"loads-0: line 3: orders-4 is not in the snapshot: {CURE}"),
        ("topic,partition\norders,3\norders,3\n", f"loads-0: line 3: orders-3 is a duplicate: {CURE}"),
        ('{"topic": "orders", "partition": 3}\n{"topic":\n', "loads-0: line 2: not JSON: '{\"topic\":'"),
        ('{"topic": "orders", "partition": 3}\n' + 2 * '{"topic": "a"}', "loads-0: line 2: not JSON: "),
        ('[{"topic": "orders", "partition": 3, "bytes": true}]', "loads-0: entry 1: bytes must be a number, not True"),
        ('[{"topic": "orders", "partition": 3, "bytes": NaN}]', "loads-0: entry 1: orders-3: a size or rate must be"),
    ],
)
def test_a_bad_row_of_loads_is_named(tmp_path: Path, loads: str, line: str) -> None:
    assert refusal(tmp_path, dumped(row()), loads).startswith(line)
