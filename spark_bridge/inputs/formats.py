"""The detection of formats by content; the file name decides only if the content does not."""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from pathlib import Path
from typing import Final

from spark_bridge.errors import PlanError
from spark_bridge.inputs.text import open_text

_SAMPLE = 1 << 20
_PARQUET = b"PAR1"
_LINES = {".jsonl", ".ndjson"}

GENERATED: Final = "Current partition replica assignment"
"""The line before the JSON of the current assignment."""

_DESCRIBED = re.compile(r"^\s*Topic: ?\S+\s+(TopicId|PartitionCount|Partition): ?\S", re.MULTILINE)


class Format(Enum):
    """The formats of inputs."""

    PARQUET = auto()  # a file, or a folder of them
    JSON_LIST = auto()  # [{...}, {...}]
    JSON_DOCUMENT = auto()  # {"partitions": [...]}
    JSON_LINES = auto()  # one object per line
    LOG_DIRS = auto()  # what kafka-log-dirs prints, with or without its two lines of text
    GENERATED = auto()  # what kafka-reassign-partitions --generate prints
    DESCRIBED = auto()  # what kafka-topics --describe prints
    CSV = auto()  # a header and lines


def format_of(path: Path) -> Format:
    """Return the format of an input.

    Raises:
        PlanError: It cannot be read, or is empty.
    """
    if path.is_dir() or path.suffix == ".parquet" or _first_bytes(path) == _PARQUET:
        return Format.PARQUET
    with open_text(path) as file:
        sample = file.read(_SAMPLE).lstrip()
    if not sample:
        raise PlanError(f"{path}: it is empty")
    if sample.startswith("["):
        return Format.JSON_LIST
    if sample.startswith("{"):
        return _of_objects(path, sample)
    return _of_text(sample)


def _of_text(sample: str) -> Format:
    """Return the format of text: a table, or the output of a Kafka tool, which may begin with lines of its own."""
    head = sample.partition("{")[0]
    if "log director" in head:
        return Format.LOG_DIRS
    if GENERATED in head:
        return Format.GENERATED
    return Format.DESCRIBED if _DESCRIBED.search(sample) else Format.CSV


def _of_objects(path: Path, sample: str) -> Format:
    if path.suffix in _LINES:
        return Format.JSON_LINES
    head = sample[: sample.find("[")]
    if '"brokers"' in head and '"logDirs"' in sample:
        return Format.LOG_DIRS
    try:
        first = json.loads(sample.partition("\n")[0])
    except (json.JSONDecodeError, RecursionError):
        # An object that continues in the next line, or is longer than any row.
        return Format.JSON_DOCUMENT
    # The document {} is not a row either.
    is_document = not first or first.keys() & {"brokers", "partitions"}
    return Format.JSON_DOCUMENT if is_document else Format.JSON_LINES


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET))
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}") from None
