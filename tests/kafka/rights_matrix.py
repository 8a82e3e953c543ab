"""The table of docs/kafka_clusters.md: what each command does for users with few permissions.

A cell is one of the words of `Cell`. Each row has the words of its command; those of a user are the columns.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

import trio

from tests.cli.shell import run_klamm

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "kafka_clusters.md"
USERS: Final = ("nothing", "one topic", "all topics", "all topics, the cluster", "everything")
"""The columns: a user without permissions, users with Describe on these resources, and one with all operations."""

_NEEDS: Final = re.compile(r"our principal needs (\w+) on (the cluster|all topics|the topics|topic \S+)")
_DUMP: Final = re.compile(r"Request\(|processor=|connectionId|org\.apache|Authorization failed|authorization failed")
"""What brokers write about a denied request, which no command shows."""


class Cell(StrEnum):
    """What a command does for a user."""

    WHOLE = "whole"
    """It shows or does everything."""

    PART = "part"
    """It says that topics are hidden."""

    COUNTS = "counts"
    """It has all topics, and says which facts of the cluster are hidden."""

    REFUSED = "refused"
    """It ends with 1, and names the operation and the resource that are missing."""


_PLAN: Final = ("--brokers-table", "FOLDER/brokers.csv", "-o", "json", "--out", "FOLDER/plan")
_BROKERS: Final = "id,state\n2,live\n3,live\n"
"""Brokers for plans, besides those that are there."""

_MOVE: Final = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}'
"""A file that is good wherever broker 1 has the partition."""


ROWS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "`topic list`": ("topic", "list", "-o", "json"),
        "`topic describe`": ("topic", "describe", "-o", "json"),
        "`topic describe orders`": ("topic", "describe", "orders", "-o", "json"),
        "`broker list`": ("broker", "list", "-o", "json"),
        "`cluster describe`": ("cluster", "describe", "-o", "json"),
        "`log-dirs describe`": ("log-dirs", "describe", "-o", "json"),
        "`log-dirs describe --topic-list 'o*'`": ("log-dirs", "describe", "--topic-list", "o*", "-o", "json"),
        "`state dump`": ("state", "dump"),
        "`plan add-brokers --brokers 3`": ("plan", "add-brokers", "--brokers", "3", *_PLAN),
        "`plan rebalance`": ("plan", "rebalance", *_PLAN),
        "`plan remove-brokers --brokers 2`": ("plan", "remove-brokers", "--brokers", "2", *_PLAN),
        "the same with `--partial`": ("plan", "remove-brokers", "--brokers", "2", "--partial", *_PLAN),
        "`top --once`": ("top", "--once", "-o", "json"),
        "`reassignment execute --dry-run`": (
            *("reassignment", "execute", "--reassignment-json-file", "FOLDER/move.json"),
            *("--dry-run", "-o", "json"),
        ),
        "`rollout run --dry-run`": ("rollout", "run", "FOLDER/move.json", "--dry-run", "-o", "json"),
        "`reassignment list`": ("reassignment", "list", "-o", "json"),
    }
)
"""The rows in the order of the document. FOLDER stands for a folder of its own for each row."""


async def run_row(name: str, folder: Path, *more: str) -> Cell:
    """Run the command of a row with more options, and return what it did."""
    own = folder / str(list(ROWS).index(name))
    await trio.Path(own).mkdir(parents=True)
    await trio.Path(own / "move.json").write_text(_MOVE)
    await trio.Path(own / "brokers.csv").write_text(_BROKERS)
    words = (word.replace("FOLDER", str(own)) for word in ROWS[name])
    return cell_of(await run_klamm(*words, *more))


def cell_of(done: subprocess.CompletedProcess[bytes]) -> Cell:
    """Return what a command did. It fails for one that ends without a reason, or shows the text of a broker."""
    out, err = done.stdout.decode(), done.stderr.decode()
    assert not _DUMP.search(out + err), out + err
    if done.returncode:
        assert _NEEDS.search(err), err
        return Cell.REFUSED
    if "this is only a part of the cluster" in err:
        assert "this is only a part of the cluster" in out, out
        return Cell.PART
    if _NEEDS.search(err):
        return Cell.COUNTS
    assert "our principal" not in out, out
    return Cell.WHOLE


def cells() -> dict[str, dict[str, Cell]]:
    """Return what the document promises, by command and user."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    head = f"| | {' | '.join(USERS)} |"
    table = lines[lines.index(head) + 2 :]
    found = {}
    for line in table[: table.index("")]:
        name, *answers = (cell.strip() for cell in line.strip("|").split("|"))
        found[name] = dict(zip(USERS, map(Cell, answers), strict=True))
    return found
