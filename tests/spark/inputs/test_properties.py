"""Any cluster survives a round trip through each format, and a damaged row among good ones is always named."""

from __future__ import annotations

import csv
import io
import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.inputs.read import read_cluster
from spark_bridge.inputs.sources import OnBadRows, Sources
from tests.kit.examples import examples

Row = dict[str, Any]
NAMES = st.tuples(st.sampled_from(["a", "b.c_d-1", "Zoo", "9" * 249]), st.integers(0, 2**31 - 1))
REPLICAS = st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 5), min_size=1, max_size=5, unique=True)
MEASURE = st.none() | st.integers(0, 2**53 - 1)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Draw partitions, and loads of some of them."""
    names = draw(st.lists(NAMES, min_size=1, max_size=30, unique=True))
    partitions = [{"topic": topic, "partition": number, "replicas": draw(REPLICAS)} for topic, number in names]
    loads = [
        {"topic": topic, "partition": number} | {name: draw(MEASURE) for name in ("bytes", "bytes_in", "bytes_out")}
        for topic, number in draw(st.lists(st.sampled_from(names), unique=True))
    ]
    return partitions, loads


def write(folder: Path, form: str, name: str, rows: list[Row]) -> Path:
    path = folder / f"{name}.{form}"
    match form:
        case "jsonl":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        case "json" if name == "snapshot":
            path.write_text(json.dumps({"version": 1, "partitions": rows}))
        case "json":
            path.write_text(json.dumps(rows))
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case _:
            text = io.StringIO()
            table = csv.DictWriter(text, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
            path.write_text(text.getvalue())
    return path


def read(partitions: list[Row], loads: list[Row], snapshot_form: str, loads_form: str, rule: OnBadRows) -> list[Row]:
    with TemporaryDirectory() as name:
        snapshot = write(Path(name), snapshot_form, "snapshot", partitions)
        paths = (write(Path(name), loads_form, "loads", loads),) if loads else ()
        rows: list[Row] = read_cluster(Sources(snapshot, paths, on_bad_rows=rule)).partitions.to_pylist()
        return rows


FORMS = list(product(["json", "jsonl", "parquet"], ["csv", "json", "jsonl", "parquet"]))
EACH_ONCE = {("json", "csv"), ("jsonl", "json"), ("parquet", "jsonl"), ("json", "parquet")}
"""Snapshots and loads are read apart from each other: other pairs of formats show little more."""


@pytest.mark.parametrize(
    ("snapshot_form", "loads_form"),
    [pytest.param(*pair, marks=() if pair in EACH_ONCE else pytest.mark.soak) for pair in FORMS],
)
@examples(15)
@given(clusters())
def test_a_cluster_comes_out_as_it_went_in(
    snapshot_form: str, loads_form: str, cluster: tuple[list[Row], list[Row]]
) -> None:
    partitions, loads = cluster
    known = {(row["topic"], row["partition"]): row for row in loads}
    nothing = {
        "topic_id": None,
        "leader": None,
        "min_insync_replicas": None,
        "bytes": None,
        "bytes_in": None,
        "bytes_out": None,
    }
    expected = [row | nothing | known.get((row["topic"], row["partition"]), {}) for row in partitions]
    came = read(partitions, loads, snapshot_form, loads_form, OnBadRows.REFUSE)
    assert came == sorted(expected, key=lambda row: (row["topic"], row["partition"]))


DAMAGE: list[Row] = [
    {"topic": ""},
    {"topic": "a/b"},
    {"topic": ".."},
    {"topic": "x" * 250},
    {"topic": "ö"},
    {"partition": -1},
    {"partition": 2**31},
    {"replicas": []},
    {"replicas": [3, 3]},
    {"replicas": [-1]},
    {"replicas": [2**31]},
]


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
@examples(15)
@given(clusters(), st.sampled_from(DAMAGE), st.data())
def test_a_damaged_row_is_named_wherever_it_stands(
    form: str, cluster: tuple[list[Row], list[Row]], damage: Row, data: st.DataObject
) -> None:
    partitions, _ = cluster
    place = data.draw(st.integers(0, len(partitions) - 1))
    damaged = [row | damage if n == place else row for n, row in enumerate(partitions)]
    with pytest.raises(PlanError, match=rf"snapshot\.{form}: (entry|line|row) {place + 1}: [^\n]*$"):
        read(damaged, [], form, "csv", OnBadRows.REFUSE)
    kept = read(damaged, [], form, "csv", OnBadRows.SET_ASIDE)
    assert len(kept) == len(partitions) - 1


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet"])
@examples(15)
@given(clusters(), st.sampled_from([-1.0, 2.0**53, float("inf"), float("nan")]), st.data())
def test_a_load_that_is_no_number_of_bytes_is_named(
    form: str, cluster: tuple[list[Row], list[Row]], value: float, data: st.DataObject
) -> None:
    partitions, _ = cluster
    loads = [{"topic": row["topic"], "partition": row["partition"], "bytes_out": 1.5} for row in partitions]
    place = data.draw(st.integers(0, len(loads) - 1))
    loads[place]["bytes_out"] = value
    line = place + 2 if form == "csv" else place + 1
    with pytest.raises(PlanError, match=rf"loads\.{form}: (entry|line|row) {line}: [^\n]*a size or rate must be"):
        read(partitions, loads, "jsonl", form, OnBadRows.REFUSE)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=20))
def test_whatever_a_file_holds_is_read_or_refused_in_one_line(lines: list[str]) -> None:
    with TemporaryDirectory() as name:
        good, junk = Path(name) / "good.json", Path(name) / "junk"
        good.write_text(json.dumps({"partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]}))
        junk.write_text("\n".join(lines))
        for sources in (Sources(junk), Sources(good, (junk,)), Sources(good, brokers=junk)):
            with pytest.raises(PlanError, match=r"^[^\n]*$"):
                read_cluster(sources)
