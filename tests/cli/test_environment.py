"""A cluster that the environment names, for commands on whose command line there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell, run_klamm
from tests.kafka.scripted_nodes import scripted_nodes
from transport.zookeeper_server import free_port

SERVER, SECURITY = "KLAMM_BOOTSTRAP_SERVER", "KLAMM_COMMAND_CONFIG"


async def topics(*words: str) -> list[str]:
    """Return the topics that a command lists."""
    done = await run_klamm("topic", "list", "-o", "json", *words)
    assert done.returncode == 0, done.stderr.decode()
    return [row["topic"] for row in json.loads(done.stdout)]


async def refusal(*words: str) -> str:
    """Return the line with which a command fails."""
    done = await run_klamm(*words)
    assert done.returncode == 1, done.stdout.decode()
    return done.stderr.decode()


async def test_the_command_line_comes_first(klamm: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2")
    async with scripted_nodes(1) as nodes:
        nodes.show("clicks", (1,))
        [(host, port)] = nodes.bootstrap
        monkeypatch.setenv(SERVER, f"{host}:{port}")
        assert await topics() == ["clicks"]
        assert await topics("--bootstrap-server", klamm.bootstrap) == ["orders"]
        monkeypatch.setenv(SERVER, klamm.bootstrap)
        assert (await run_klamm("produce", "orders", stdin=b"first\n")).returncode == 0
        assert (await run_klamm("consume", "orders")).stdout == b"first\n"


async def test_another_place_on_the_command_line_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv(SERVER, nobody)
    there = f"127.0.0.1:{free_port()}"
    for words in (("topic", "list", "--timeout", "1"), ("state", "dump")):
        assert there in await refusal(*words, "--zookeeper", there)
        assert nobody in await refusal(*words[:2])
    snapshot = str(tmp_path / "snapshot.json")
    plan = ("plan", "remove-brokers", "--brokers", "1")
    assert snapshot in await refusal(*plan, "--snapshot", snapshot)
    assert nobody in await refusal(*plan)


async def test_the_security_is_that_of_the_named_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(tmp_path / "client.properties")
    monkeypatch.setenv(SECURITY, missing)
    assert missing in await refusal("topic", "list")
    assert missing in await refusal("produce", "orders")
    monkeypatch.setenv(SERVER, f"127.0.0.1:{free_port()}")
    assert missing in await refusal("state", "dump")
