"""Write the schemas and the words of all commands as they are now: `python -m tests.cli.walk.write`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from klamm.cli.demo.task_cluster import task_cluster
from klamm.cli.formats import schema_of
from tests.cli.shell import bootstrap_of
from tests.cli.walk.commands import COMMANDS, FORMATTED
from tests.cli.walk.recording import GOLDEN, help_of, recorded
from tests.cli.walk.test_conventions import SCHEMAS


async def main() -> None:
    """Write a schema for each document, and for each command a file with its words."""
    SCHEMAS.mkdir(exist_ok=True)
    GOLDEN.mkdir(exist_ok=True)
    for words, command in FORMATTED.items():
        text = json.dumps(schema_of(command), indent=2) + "\n"
        (SCHEMAS / f"{words.replace(' ', '-')}.json").write_text(text, encoding="utf-8")
    os.environ["COLUMNS"] = "80"
    with TemporaryDirectory() as folder:
        async with task_cluster(Path(folder)) as cluster:
            printed = await recorded(await bootstrap_of(cluster.store), Path(folder))
    for words in COMMANDS:
        text = help_of(words) + printed.get(words, "")
        (GOLDEN / f"{words.replace(' ', '-')}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
