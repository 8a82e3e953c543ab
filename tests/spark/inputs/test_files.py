"""The kinds of input files: log directories, tables of brokers, Parquet, and documents of any shape."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.inputs import documents, parquet
from spark_bridge.inputs.read import ClusterInputs, read_cluster
from spark_bridge.inputs.sources import Sources
from spark_bridge.model.brokers import Broker, BrokerState

PARTITIONS = [{"topic": "my-topic", "partition": n, "replicas": [1, 2]} for n in range(3)]


def cluster(tmp_path: Path, *loads: Path, brokers: Path | None = None, listed: object = None) -> ClusterInputs:
    snapshot = tmp_path / "s.json"
    snapshot.write_text(json.dumps({"partitions": PARTITIONS, "brokers": listed or [{"id": 1, "rack": "a"}]}))
    return read_cluster(Sources(snapshot, loads, brokers))


def refusal(tmp_path: Path, *loads: Path, brokers: Path | None = None) -> str:
    with pytest.raises(PlanError) as caught:
        cluster(tmp_path, *loads, brokers=brokers)
    return str(caught.value).replace(f"{tmp_path}/", "")


def log_dirs(path: Path, *replicas: object, text: str = "Received log directory information from brokers 1\n") -> Path:
    document = {"version": 1, "brokers": [{"broker": 1, "logDirs": [{"logDir": "/", "partitions": list(replicas)}]}]}
    path.write_text(text + json.dumps(document))
    return path


def replica(name: str, size: object, **fields: object) -> dict[str, object]:
    return {"partition": name, "size": size, "offsetLag": 0, "isFuture": False, **fields}


def test_of_log_directories_the_greatest_replica_counts_and_futures_do_not(tmp_path: Path) -> None:
    replicas = [*(replica("my-topic-0", size) for size in (5, 7, 6)), replica("my-topic-1", 9, isFuture=True)]
    for text in ("Querying brokers for log directories information\nReceived log directory\n", ""):
        path = log_dirs(tmp_path / "l", *replicas, text=text)
        assert cluster(tmp_path, path).partitions["bytes"].to_pylist() == [7, None, None]


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        (replica("orders", 1), "l: entry 2: partition must be a name such as orders-0, not 'orders'"),
        (replica(f"a-{10**20}", 1), f"l: entry 2: partition must be a name such as orders-0, not 'a-{10**20}'"),
        (replica("my-topic-0", "1"), "l: entry 2: size must be a number, not '1'"),
        (replica("my-topic-0", -1), "l: entry 2: my-topic-0: a size or rate must be a number from 0 to 2^53: bytes -1"),
        (replica("my-topic-9", 1), "l: entry 2: my-topic-9 is not in the snapshot"),
    ],
)
def test_a_bad_replica_of_log_directories_is_named(tmp_path: Path, bad: object, line: str) -> None:
    path = log_dirs(tmp_path / "l", replica("my-topic-0", 5), bad)
    assert refusal(tmp_path, path).startswith(line)


def test_other_json_is_no_log_directories(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_text('Received log directory information\n{"version": 1, "brokers": [{"broker": 1}]}')
    assert refusal(tmp_path, path) == (
        "l: no brokers[].logDirs[].partitions[]: give the output of kafka-log-dirs --describe"
    )


BROKERS = {
    "b.csv": "rack,id,capacity,state,disk\n,1,2.5,excluded,\nb,2,,live,1000\n,3,,,\n",
    "b.json": '{"brokers": [{"id": 1, "capacity": 2.5, "state": "excluded"}, {"id": 2, "rack": "b", "disk": 1000, '
    '"state": "live"}, {"id": 3, "rack": ""}]}',
    "b.jsonl": '{"id": 1, "capacity": 2.5, "state": "excluded"}\n{"id": 2, "rack": "b", "disk": 1000, '
    '"state": "live"}\n{"id": 3}\n',
}


@pytest.mark.parametrize("name", BROKERS)
def test_a_table_of_brokers_adds_to_the_snapshot_and_overrides_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(BROKERS[name])
    assert cluster(tmp_path, brokers=path).brokers.rows == (
        Broker(1, "a", 2.5, None, BrokerState.EXCLUDED),
        Broker(2, "b", 1.0, 1000, BrokerState.LIVE),
        # The snapshot lists who is there, and this one is not.
        Broker(3, state=BrokerState.DEAD),
    )


def test_without_brokers_in_the_snapshot_those_of_the_table_are_live(tmp_path: Path) -> None:
    snapshot, table = tmp_path / "s.json", tmp_path / "b.csv"
    snapshot.write_text(json.dumps({"version": 1, "partitions": PARTITIONS}))
    table.write_text("id,rack\n1,a\n5,b\n")
    assert read_cluster(Sources(snapshot, brokers=table)).brokers.rows == (
        Broker(1, "a"),
        Broker(2, state=BrokerState.DEAD),
        Broker(5, "b"),
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name\n1\n", "no column id in its first line: name the columns there (id,rack,capacity,disk,state)"),
        ("id\nx\n", "line 2: id must be a whole number, not 'x'"),
        ("id,rack\n-1,a\n", "line 2: id must be a number from 0 to 2147483647, not -1"),
        ("id,capacity\n1,0\n", "line 2: broker 1: capacity must be a number above 0, not 0.0"),
        ("id,disk\n1,-5\n", "line 2: broker 1: disk must be a number of bytes, not -5"),
        ("id,state\n1,dying\n", "line 2: broker 1: state must be live, excluded, draining, dead, not 'dying'"),
        ("id,rack\n1,a\n1,b\n", "line 3: broker 1 is a duplicate"),
    ],
)
def test_a_bad_broker_is_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "b.csv"
    path.write_text(text)
    assert refusal(tmp_path, brokers=path) == f"b.csv: {line}"


def test_a_folder_of_parquet_is_read_in_the_order_of_its_files(tmp_path: Path) -> None:
    loads = pa.table({"topic": ["my-topic"], "partition": pa.array([2], pa.int16()), "bytes_in": [0.6]})
    (tmp_path / "loads").mkdir()
    pq.write_table(loads, tmp_path / "loads" / "1.parquet")
    assert cluster(tmp_path, tmp_path / "loads").partitions["bytes_in"].to_pylist() == [None, None, 1]
    for name in "9758246":
        pq.write_table(loads, tmp_path / "loads" / f"{name}.parquet")
    assert refusal(tmp_path, tmp_path / "loads").startswith(
        "loads/2.parquet: row 1: my-topic-2 is a duplicate: correct"
    )


def test_rows_of_parquet_are_counted_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_ROWS", 2)
    loads = pa.table({"topic": 4 * ["my-topic"], "partition": [0, 1, 2, -1]})
    pq.write_table(loads, tmp_path / "l")
    assert refusal(tmp_path, tmp_path / "l").startswith("l: row 4: partition of my-topic must be")


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"topic": ["a"]}, "no column partition: it has topic"),
        ({"topic": [1], "partition": [1]}, "column topic must be a string, not int64"),
        ({"topic": ["a"], "partition": [1], "bytes": ["1"]}, "column bytes must be a number, not string"),
    ],
)
def test_parquet_with_other_columns_is_refused(tmp_path: Path, table: dict[str, list[object]], line: str) -> None:
    pq.write_table(pa.table(table), tmp_path / "l.parquet")
    assert refusal(tmp_path, tmp_path / "l.parquet") == f"l.parquet: {line}"


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "l.parquet").write_bytes(b"PAR1 and no more")
    assert refusal(tmp_path, tmp_path / "l.parquet").startswith("l.parquet: not readable as Parquet: ")
    (tmp_path / "folder").mkdir()
    assert refusal(tmp_path, tmp_path / "folder") == "folder: no *.parquet in this folder"
    assert refusal(tmp_path, tmp_path / "nowhere") == "nowhere: No such file or directory"


@pytest.mark.parametrize(
    ("log", "name", "folder"),
    [
        ("_delta_log/00000000000000000000.json", "Delta", "."),
        (".hoodie/hoodie.properties", "Hudi", "."),
        ("metadata/v1.metadata.json", "Iceberg", "."),
        ("metadata/v1.metadata.json", "Iceberg", "data"),
    ],
)
def test_a_folder_with_files_that_no_longer_count_is_refused(tmp_path: Path, log: str, name: str, folder: str) -> None:
    table = tmp_path / "table"
    for path in (table / log, table / "data" / "0.parquet"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (table / log).write_text("{}")
    rows = pa.Table.from_pylist([{"topic": "my-topic", "partition": 0, "bytes": 5}])
    for path in (table / "0.parquet", table / "data" / "0.parquet"):
        pq.write_table(rows, path)
    assert refusal(tmp_path, table / folder) == (
        f"{(Path('table') / folder)}: a {name} table, whose folder also has files that no longer belong to it: "
        "export its current rows as plain Parquet"
    )


def test_a_folder_beside_others_called_metadata_is_plain_parquet(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    (tmp_path / "loads").mkdir()
    rows = pa.Table.from_pylist([{"topic": "my-topic", "partition": 0, "bytes": 5}])
    pq.write_table(rows, tmp_path / "loads" / "0.parquet")
    assert cluster(tmp_path, tmp_path / "loads").partitions["bytes"].to_pylist() == [5, None, None]


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_reads_the_same_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    rows = [
        row | {"version": 'a "} , {" in a text', "log_dirs": {"deep": [{}, {}]}, "leader_epoch": n / 7}
        for row in PARTITIONS
        for n in (1,)
    ]
    document = {"n": 12345, "brokers": [{"id": 1}, {"id": 2}], "partitions": rows, "x": ["},"], "more": [{"id": 3}]}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document, indent=indent))
    whole = read_cluster(Sources(path))
    monkeypatch.setattr(documents, "_CHUNK", chunk)
    assert read_cluster(Sources(path)) == whole


def test_a_value_is_not_read_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_LONGEST_VALUE", 5 << 20)
    path = tmp_path / "s.json"
    path.write_bytes(b'{"more": [' + b"1," * (4 << 20))
    with pytest.raises(PlanError, match=r"s\.json: line 1: not JSON: a value of more than 5 MB$"):
        read_cluster(Sources(path))


def test_by_its_name_a_file_has_json_lines_though_the_first_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text('{"topic": "my-topic",\n{"topic": "my-topic", "partition": 1}\n')
    assert refusal(tmp_path, path).startswith("l.jsonl: line 1: not JSON: ")
