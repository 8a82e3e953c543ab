"""Profiles: which cluster a command asks, and what is said of a file that cannot be used."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import click
import pytest
import trio

from klamm.cli.profiles import Place, profiles_file, read_profile
from tests.cli.shell import run_klamm
from tests.cli.test_completion import completed
from tests.kafka.scripted_nodes import ScriptedNodes, scripted_nodes

SERVER, SECURITY, PROFILE = "KLAMM_BOOTSTRAP_SERVER", "KLAMM_COMMAND_CONFIG", "KLAMM_PROFILE"
PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
NAMES = ("typed", "variable", "profile")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a file of profiles of its own, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = profiles_file()
    assert found == tmp_path / "klamm" / "profiles.toml"
    found.parent.mkdir()
    return found


@pytest.fixture
async def clusters() -> AsyncIterator[dict[str, str]]:
    """Give the test three clusters by name, each with a topic of that name."""
    async with scripted_nodes(1) as typed, scripted_nodes(1) as variable, scripted_nodes(1) as profile:
        yield {name: named(nodes, name) for name, nodes in zip(NAMES, (typed, variable, profile), strict=True)}


def write(file: Path, text: str) -> None:
    """Write a file."""
    file.write_text(text)


def named(nodes: ScriptedNodes, topic: str) -> str:
    """Show a topic, and return the address of the node."""
    nodes.show(topic, (1,))
    [(host, port)] = nodes.bootstrap
    return f"{host}:{port}"


async def topics(*words: str) -> list[str]:
    """Return the topics that a command lists."""
    done = await run_klamm("topic", "list", "-o", "json", "--timeout", "10", *words)
    assert done.returncode == 0, done.stderr.decode()
    return [row["topic"] for row in json.loads(done.stdout)]


async def refusal(*words: str) -> str:
    """Return the line with which a command fails."""
    done = await run_klamm(*words)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done
    return done.stderr.decode()


# --- which cluster ------------------------------------------------------------------------------------------------


async def test_the_nearest_name_of_a_cluster_counts(
    clusters: dict[str, str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, f'[lab]\nbootstrap-server = "{clusters["profile"]}"\n')
    typed = ("--bootstrap-server", clusters["typed"])
    assert await topics("--profile", "lab") == ["profile"]
    monkeypatch.setenv(PROFILE, "lab")
    assert await topics() == ["profile"]
    monkeypatch.setenv(SERVER, clusters["variable"])
    assert await topics() == ["variable"]
    assert await topics("--profile", "lab") == ["profile"]
    assert await topics(*typed) == ["typed"]
    assert await topics(*typed, "--profile", "lab") == ["typed"]


async def test_the_security_of_a_profile_is_for_its_own_cluster(
    clusters: dict[str, str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, f'[lab]\nbootstrap-server = "{clusters["profile"]}"\ncommand-config = "lab.properties"\n')
    typed = ("--bootstrap-server", clusters["typed"])
    missing = f"Error: --command-config: {file.parent / 'lab.properties'}: "
    ours = file.parent / "open.properties"
    write(ours, "security.protocol=PLAINTEXT\n")
    assert (await refusal("topic", "list", "--profile", "lab")).startswith(missing)
    assert (await refusal("topic", "list", "--profile", "lab", *typed)).startswith(missing)
    assert await topics("--profile", "lab", "--command-config", str(ours)) == ["profile"]
    monkeypatch.setenv(PROFILE, "lab")
    assert (await refusal("topic", "list")).startswith(missing)
    assert await topics(*typed) == ["typed"]
    monkeypatch.setenv(SECURITY, str(ours))
    assert await topics() == ["profile"]
    assert (await refusal("topic", "list", "--profile", "lab")).startswith(missing)
    monkeypatch.delenv(SECURITY)
    monkeypatch.setenv(SERVER, clusters["variable"])
    assert await topics() == ["variable"]


async def test_every_command_that_asks_a_cluster_takes_a_profile(
    clusters: dict[str, str], file: Path, tmp_path: Path
) -> None:
    write(file, f'[lab]\nbootstrap-server = "{clusters["profile"]}"\n\n[old]\nzookeeper = "127.0.0.1:1/old"\n')
    dump = await run_klamm("state", "dump", "--profile", "lab")
    assert {row["topic"] for row in json.loads(dump.stdout)["partitions"]} == {"profile"}, dump.stderr
    assert "is Apache Kafka: this command is for Klamm's brokers" in await refusal("consume", "t", "--profile", "lab")
    said = await refusal("produce", "t", "--profile", "old")
    assert said == "Error: the profile names a ZooKeeper: name brokers with --bootstrap-server\n"
    for words in (("topic", "list", "--timeout", "1"), ("state", "dump"), ("cluster", "describe", "--timeout", "1")):
        assert "127.0.0.1:1" in await refusal(*words, "--profile", "old")
    plan = ("plan", "remove-brokers", "--brokers", "1", "--out", str(tmp_path / "plan.json"))
    assert clusters["profile"] in (await run_klamm(*plan, "--profile", "lab")).stderr.decode()


async def test_a_shell_completes_profiles_and_their_topics(clusters: dict[str, str], file: Path) -> None:
    write(file, f'[lab]\nbootstrap-server = "{clusters["profile"]}"\n\n[late]\nzookeeper = "127.0.0.1:1"\n')
    for words, expected in (
        ("klamm topic list --profile la", ["lab", "late"]),
        ("klamm topic describe --profile lab pro", ["profile"]),
        ("klamm topic describe --profile nobody pro", []),
    ):
        assert await trio.to_thread.run_sync(completed, words) == expected, words


# --- the file -----------------------------------------------------------------------------------------------------


def test_paths_are_relative_to_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = file.parent.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    entries = {"here": "a.properties", "there": "/etc/a.properties", "home": "~/a.properties"}
    file.write_text("".join(f'[{n}]\nbootstrap-server = "k:1"\ncommand-config = "{at}"\n' for n, at in entries.items()))
    found = {name: read_profile(name).command_config for name in entries}
    assert found == {
        "here": str(file.parent / "a.properties"),
        "there": "/etc/a.properties",
        "home": str(home / "a.properties"),
    }
    assert read_profile("here") == Place("k:1", None, found["here"], profile="here")
    for base in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
        assert profiles_file() == home / ".config" / "klamm" / "profiles.toml"


def test_the_documents_profiles_are_read(file: Path) -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("\n## Profiles\n")
    text, _, _ = section.partition("```toml\n")[2].partition("```")
    file.write_text(text)
    secrets = str(file.parent / "production.properties")
    found = Place("kafka1:9092,kafka2:9092", None, secrets, shared_disks=False, profile="production")
    assert read_profile("production") == found
    assert read_profile("lab") == Place(None, "127.0.0.1:2181/klamm", None, profile="lab")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[prod]\nzookeeper = "k:1"\n[dev]\nzookeeper = "k:1"', "there is no profile lab: it has dev, prod"),
        ("", "there is no profile lab: it has none"),
        ("lab = 1", "lab is no profile: begin one with [NAME]"),
        ("[lab", "not TOML: "),
        ("[lab]", "[lab]: give it either bootstrap-server or zookeeper"),
        ('[lab]\nbootstrap-server = "k:1"\nzookeeper = "k:1"', "[lab]: give it either bootstrap-server or zookeeper"),
        (
            '[lab]\nbootstrap-servers = "k:1"',
            "[lab]: there is no key bootstrap-servers: did you mean bootstrap-server?",
        ),
        (
            '[lab]\nsasl = "secret"',
            "[lab]: there is no key sasl: valid are bootstrap-server, command-config, shared-disks, zookeeper",
        ),
        ("[lab]\nbootstrap-server = 9092", '[lab]: bootstrap-server must be a string such as "…", and not empty'),
        ('[lab]\nbootstrap-server = "k:1"\nshared-disks = "no"', "[lab]: shared-disks must be true or false"),
        ('[lab]\nbootstrap-server = "k"', "[lab]: bootstrap-server: 'k' is not HOST:PORT"),
    ],
)
def test_a_mistake_is_named_with_its_file(text: str, fault: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(click.ClickException) as caught:
        read_profile("lab")
    assert caught.value.message.startswith(f"{file}: {fault}")
    assert "secret" not in caught.value.message


async def test_a_file_that_cannot_be_read_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = f"Error: cannot read the profiles: {file}: "
    assert (await refusal("topic", "list", "--profile", "lab")).startswith(missing)
    monkeypatch.setenv(PROFILE, "lab")
    assert (await refusal("topic", "list")).startswith(missing)
    await trio.Path(file).mkdir()
    assert (await refusal("topic", "list")).startswith(missing)
