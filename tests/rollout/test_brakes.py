"""Brakes make a rollout pause by itself, and let go."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import cast

import pytest
import trio

from controller.admin.move_admin import MoveAdmin
from controller.rollout.choosing import Hold
from klamm.cli.rollout import brakes
from klamm.cli.rollout.brakes import Brakes, foreign_hold
from transport import pages
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.host import Host
from transport.http import Page, serve_http
from transport.messages import (
    BrokerEndpoint,
    ConfigEntry,
    ConfigResource,
    MetadataResponse,
    PartitionState,
    ResourceConfigs,
)
from transport.network import TcpNetwork
from transport.pages import page_fault, shown
from transport.signals import signal_of
from transport.zookeeper_server import free_port

HOST = "127.0.0.1"
NOBODY = cast("MoveAdmin", None)
"""A cluster that is asked for nothing but moves."""


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let brakes look each time."""
    monkeypatch.setattr(brakes, "LOOK_SECONDS", 0.0)


def cluster(*live: int, partitions: tuple[PartitionState, ...] = ()) -> MetadataResponse:
    return MetadataResponse(None, 1, tuple(BrokerEndpoint(id_, HOST, 1) for id_ in live), partitions)


def state(topic: str, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionState:
    return PartitionState(topic, "id", 0, 1, isr[0], 1, isr, 1, replicas)


class Topics:
    """A cluster that tells the settings of its topics, of which each needs two replicas in sync."""

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> tuple[ResourceConfigs, ...]:
        entry = ConfigEntry(MIN_INSYNC_REPLICAS, "2", "DYNAMIC_TOPIC_CONFIG")
        return tuple(ResourceConfigs(one, (entry,)) for one in resources)


async def test_a_partition_that_may_get_better_holds_up_all_but_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brakes, "ClusterAdmin", Topics)
    short, alone, whole = state("short", (1, 2), (1,)), state("alone", (1,), (1,)), state("whole", (1, 2, 3), (1, 2))
    braking = Brakes(cast("MoveAdmin", Topics()), ())
    assert await braking.look(cluster(1, partitions=(alone, whole))) is None
    found = cluster(1, partitions=(short, alone, whole))
    assert await braking.look(found) == Hold("short-0 is under min ISR", spares_urgent=True)
    braking.ignores_min_isr = True
    assert await braking.look(found) is None


async def _listen_only(_: trio.abc.Stream) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (HTTPStatus.OK, None),
        (HTTPStatus.NO_CONTENT, None),
        (HTTPStatus.SERVICE_UNAVAILABLE, "answers 503"),
        (HTTPStatus.NOT_FOUND, "answers 404"),
    ],
)
async def test_a_url_says_go_by_its_status(status: HTTPStatus, expected: str | None, nursery: trio.Nursery) -> None:
    async def page(_: str) -> Page:
        return Page(b"", status)

    port = await nursery.start(serve_http, TcpNetwork(), page, HOST, 0)
    assert await page_fault(f"http://{HOST}:{port}/go") == expected


async def test_a_url_that_does_not_answer_says_no(monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> None:
    assert await page_fault(f"http://{HOST}:{free_port()}/") == "does not answer: Connection refused"
    monkeypatch.setattr(pages, "ANSWER_SECONDS", 0.05)
    deaf = await nursery.start(TcpNetwork().serve, _listen_only, HOST, 0)
    assert "timed out" in str(await page_fault(f"http://{HOST}:{deaf}/"))


async def test_what_may_be_secret_in_a_url_is_not_shown() -> None:
    url = f"http://{HOST}:{free_port()}/go"
    said = await signal_of("", f"{url}?token=secret#secret", Host())
    assert said == f"{url} does not answer: Connection refused"
    assert await Brakes(NOBODY, (), url=f"{url}?token=secret").look(cluster()) == Hold(said)
    assert [shown("http://alice:secret@go/ready"), shown("http://[secret")] == ["http://go/ready", "the page"]


async def _babble(stream: trio.abc.Stream) -> None:
    await stream.receive_some(4096)
    await stream.send_all(b"garbage\r\n\r\n")


async def test_what_answers_in_another_language_says_no(nursery: trio.Nursery) -> None:
    port = await nursery.start(TcpNetwork().serve, _babble, HOST, 0)
    assert await page_fault(f"http://{HOST}:{port}/") == "is no page that can be got: BadStatusLine"


@pytest.mark.parametrize("url", [f"http://{HOST}:port/", f"http://{HOST}/a b", f"http://user:secret@{HOST}/"])
async def test_a_url_that_cannot_be_asked_says_no(url: str) -> None:
    assert await page_fault(url) == "is no page that can be got: InvalidURL"


async def test_an_answer_that_has_no_end_says_no(monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> None:
    monkeypatch.setattr(pages, "ANSWER_SECONDS", 0.2)

    async def drip(stream: trio.abc.Stream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.send_all(b"HTTP/1.1 200 OK\r\nX: ")
            while True:
                await stream.send_all(b".")
                await trio.sleep(0.05)

    port = await nursery.start(TcpNetwork().serve, drip, HOST, 0)
    assert await page_fault(f"http://{HOST}:{port}/") == "does not answer: timed out"


async def test_a_file_that_cannot_be_looked_for_says_no(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 300)
    said = f"{file} cannot be looked for: File name too long"
    assert await Brakes(NOBODY, (), file).look(cluster()) == Hold(said)
    assert await signal_of(str(file), "", Host()) == said


async def test_a_file_holds_everything_up_as_long_as_it_exists(tmp_path: Path) -> None:
    file = tmp_path / "stop"
    braking = Brakes(NOBODY, (), file)
    assert await braking.look(cluster()) is None
    await trio.Path(file).touch()
    assert await braking.look(cluster()) == Hold(f"{file} exists")
    await trio.Path(file).unlink()
    assert await braking.look(cluster()) is None


async def test_a_broker_that_died_holds_up_all_but_the_cure() -> None:
    braking = Brakes(NOBODY, (1, 2, 3))
    assert await braking.look(cluster(1)) == Hold("brokers 2, 3 died", spares_urgent=True)
    assert await braking.look(cluster(1, 2, 3, 4)) is None


def test_moves_of_others_are_named_but_not_all_of_them() -> None:
    assert foreign_hold([]) is None
    assert foreign_hold(["a-1"]) == Hold("a-1 is being moved by somebody else")
    names = [f"a-{n}" for n in range(6)]
    assert foreign_hold(names) == Hold("a-0, a-1, a-2 and 3 more are being moved by somebody else")
