"""Snapshots of a part of a cluster, in each form of a dump: they are refused unless that is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klamm.cli.state import open_writer
from spark_bridge.errors import PlanError
from spark_bridge.inputs.partial import left_out
from spark_bridge.inputs.sources import Sources

NOTE = "this is only a part of the cluster: our principal needs Describe on all topics"


def dumped(folder: Path, form: str, partial: str | None) -> Path:
    """Write a dump, and return where it is."""
    others = {"controller": {"id": None, "epoch": None}, "partial": partial, "brokers": [{"id": 1}, {"id": 2}]}
    row = {"topic": "orders", "partition": 0, "replicas": [1, 2]}
    path = folder / f"dump.{form}"
    with open_writer(form, str(path)) as writer:
        writer.partitions([row] * 3)
        writer.finish({**others, "reassign_partitions": [], "delete_topics": [], "undecodable": []})
    return path


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
def test_a_dump_of_a_part_is_refused_unless_it_is_accepted(form: str, tmp_path: Path) -> None:
    path = dumped(tmp_path, form, NOTE)
    with pytest.raises(PlanError) as raised:
        left_out(Sources(path))
    assert str(raised.value) == (
        f"{path}: {NOTE}; a plan needs the whole: get the permission, or plan for what is visible with --partial"
    )
    assert left_out(Sources(path, partial=True)) == NOTE


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
def test_a_dump_of_a_whole_cluster_is_taken(form: str, tmp_path: Path) -> None:
    assert left_out(Sources(dumped(tmp_path, form, None))) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}',
        '{"topic": "t", "partition": 0, "replicas": [1]}\n{"controller": \n',
        "{",
        "",
        json.dumps({"controller": {}, "partial": 3, "partitions": []}),
    ],
)
def test_what_says_nothing_about_parts_is_taken_as_a_whole(text: str, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(text)
    assert left_out(Sources(path)) is None
