"""The state machines as diagrams: `python -m docs.state_diagrams` writes `docs/state_machines.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from controller.model.state_machines import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, PartitionPhase, ReplicaPhase

DEFAULT_FILE: Final = Path("docs/state_machines.md")

Phase = TypeVar("Phase", bound=Enum)

_PAGE: Final = """\
# The state machines

`python -m docs.state_diagrams` generates this page from the tables in `controller/model/state_machines.py`, and a test
fails if they differ. The dot stands for a partition or replica that does not exist. A transition that is not listed is
refused, and logged with both states and the id of the event that requested it.

## Partitions

{partitions}

## Replicas

{replicas}
"""


def page() -> str:
    """Return the page, in Markdown with Mermaid diagrams."""
    return _PAGE.format(
        partitions=_machine(PARTITION_TRANSITIONS, PartitionPhase.NON_EXISTENT),
        replicas=_machine(REPLICA_TRANSITIONS, ReplicaPhase.NON_EXISTENT),
    )


def _machine(transitions: Mapping[Phase, frozenset[Phase]], nothing: Phase) -> str:
    phases = list(transitions)
    names = {phase: "[*]" if phase is nothing else phase.value for phase in phases}
    arrows = [
        f"    {names[before]} --> {names[after]}"
        for before in phases
        for after in phases
        if after in transitions[before]
    ]
    rows = [
        f"| {after.value} | {', '.join(before.value for before in phases if after in transitions[before])} |"
        for after in phases
    ]
    diagram = ["```mermaid", "stateDiagram-v2", *arrows, "```"]
    return "\n".join([*diagram, "", "| state | may follow these states |", "| --- | --- |", *rows])


def main(arguments: list[str]) -> None:
    """Write the page to the file named, docs/state_machines.md by default."""
    file = Path(arguments[0]) if arguments else DEFAULT_FILE
    file.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
