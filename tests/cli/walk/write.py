"""Write the schemas and the words of all commands as they are now: `python -m tests.cli.walk.write`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from klamm.cli.formats import schema_of
from tests.cli.walk.commands import COMMANDS, FORMATTED
from tests.cli.walk.recording import GOLDEN, Recording, help_of, record_handover, record_plans, record_session
from tests.cli.walk.stage import open_stage, surroundings
from tests.cli.walk.test_conventions import SCHEMAS
from transport.zookeeper_server import development_zookeeper


def main() -> None:
    """Write a schema for each document, and for each command a file with its words."""
    SCHEMAS.mkdir(exist_ok=True)
    GOLDEN.mkdir(exist_ok=True)
    for words, command in FORMATTED.items():
        text = json.dumps(schema_of(command), indent=2) + "\n"
        (SCHEMAS / f"{words.replace(' ', '-')}.json").write_text(text, encoding="utf-8")
    printed: dict[str, str] = {}
    for record in (_on_a_cluster, _on_a_zookeeper, _plans):
        with TemporaryDirectory() as folder:
            printed |= trio.run(record, Path(folder)).texts
    for words in COMMANDS:
        text = help_of(words) + printed.get(words, "")
        (GOLDEN / f"{words.replace(' ', '-')}.txt").write_text(text, encoding="utf-8")


async def _on_a_cluster(folder: Path) -> Recording:
    async with open_stage(folder) as stage:
        return await record_session(stage, with_documents=False)


async def _on_a_zookeeper(folder: Path) -> Recording:
    async with development_zookeeper(folder / "zookeeper") as server:
        with surroundings(folder):
            return await record_handover(f"{server.address}/walk", with_documents=False)


async def _plans(folder: Path) -> Recording:
    with surroundings(folder):
        return await trio.to_thread.run_sync(partial(record_plans, with_documents=False))


if __name__ == "__main__":
    main()
