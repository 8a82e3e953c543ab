"""Snapshots of a part of a cluster: `klamm state dump` notes in them what is hidden from its user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from spark_bridge.errors import PlanError
from spark_bridge.inputs.documents import Document
from spark_bridge.inputs.files import BROKERS_FILE
from spark_bridge.inputs.formats import Format, format_of
from spark_bridge.inputs.sources import Source, Sources, refusal
from spark_bridge.inputs.text import open_text

PARTIAL: Final = "partial"
"""The key of the note; null in a snapshot of a whole cluster."""

_LAST_LINES: Final = 1 << 20
"""The bytes at the end of JSON lines in which the note is searched."""


def left_out(sources: Sources) -> str | None:
    """Return what a snapshot lacks because it was hidden; None if it lacks nothing, or does not say so.

    Raises:
        PlanError: It lacks something, and the request accepts no part of a cluster.
    """
    partial = _partial_of(sources.snapshot)
    if partial is not None and not sources.partial:
        raise PlanError(f"{sources.snapshot}: {refusal(partial)}")
    return partial


def _partial_of(snapshot: Source) -> str | None:
    """Return the note of a snapshot. One that only Spark can reach, or that is damaged, has none."""
    if not isinstance(snapshot, Path):
        return None
    try:
        match format_of(snapshot):
            case Format.PARQUET:
                beside = snapshot / BROKERS_FILE
                note = _in_head(beside) if beside.exists() else None
            case Format.JSON_DOCUMENT:
                note = _in_head(snapshot)
            case Format.JSON_LINES:
                note = _in_last_lines(snapshot)
            case _:
                note = None
    except PlanError:
        return None  # The reader of the snapshot names its fault.
    return note if isinstance(note, str) else None


def _in_head(path: Path) -> object:
    """Return the note of a document, which comes before the partitions."""
    with open_text(path) as file:
        document = Document(path, file)
        for key in document.members():
            if key == "partitions":
                break
            value = document.value()
            if key == PARTIAL:
                return value
    return None


def _in_last_lines(path: Path) -> object:
    """Return the note of JSON lines, which is in the line with the controller, the last one."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _LAST_LINES, 0))
        lines = file.read().splitlines()
    for line in reversed(lines):
        if b'"controller"' in line:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and PARTIAL in found:
                return found[PARTIAL]
    return None
