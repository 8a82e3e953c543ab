"""A program that has something planned and is killed meanwhile; it prints the ids of the processes, one a line."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import trio

from controller.admin import planning
from controller.admin.planning import PlanRequest, Progress
from spark_bridge.process.document import from_document


def tell(made: Progress) -> None:
    """Print the id that the stub tells as what is left."""
    sys.stdout.write(f"{made.left}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    request = from_document(PlanRequest, orjson.loads(sys.argv[1]), "request")
    vars(planning)["_COMMAND"] = (str(Path(__file__).with_name("stub_bridge.py")),)
    trio.run(planning.compute_plan, request, tell)
