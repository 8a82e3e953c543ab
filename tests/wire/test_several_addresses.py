"""Hosts with several addresses, of which some are dead, silent, or those of another kind of server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
import trio
from attrs import define, field
from trio.testing import memory_stream_pair

from transport.messages import MetadataRequest, MetadataResponse
from transport.network import StreamHandler, TcpNetwork
from transport.wire import ConnectionBroken, Handlers, open_connection, serve, serve_stream
from transport.wire.client import RACE_SECONDS
from transport.wire.errors import NotServed

NAME: Final = "broker.example"
ANSWER: Final = MetadataResponse(None, 5, (), ())
LIVE, SILENT, DEAD, CLOSED, OTHER = "live", "silent", "dead", "closed", "other"


async def answer(_: MetadataRequest) -> MetadataResponse:
    return ANSWER


HANDLERS: Final[Handlers] = {MetadataRequest: answer}


@define
class Addresses:
    """A network in memory on which one name has several addresses; `open` has the streams that were not closed."""

    nursery: trio.Nursery
    kinds: Sequence[str]
    tried: list[tuple[str, float]] = field(factory=list)

    async def addresses(self, host: str) -> Sequence[str]:
        assert host == NAME
        return [f"10.0.0.{number}" for number in range(1, len(self.kinds) + 1)]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        assert (host, port) == (NAME, 9092)
        assert address is not None
        self.tried.append((address, trio.current_time()))
        kind = self.kinds[int(address.rpartition(".")[2]) - 1]
        await trio.lowlevel.checkpoint()
        if kind == CLOSED:
            raise ConnectionRefusedError(f"nothing listens at {address}")
        if kind == DEAD:
            await trio.sleep_forever()
        ours, theirs = memory_stream_pair()
        if kind == LIVE:
            self.nursery.start_soon(serve_stream, theirs, HANDLERS)
        elif kind == OTHER:
            await theirs.aclose()
        return ours

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        raise NotImplementedError


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize(
    ("kinds", "seconds"),
    [
        ([LIVE, LIVE], 0),
        ([CLOSED, LIVE], 0),
        ([OTHER, CLOSED, LIVE], 0),
        ([SILENT, LIVE, LIVE], RACE_SECONDS),
        ([DEAD, SILENT, LIVE], 2 * RACE_SECONDS),
        ([SILENT, CLOSED, LIVE], RACE_SECONDS),
    ],
)
async def test_the_first_that_answers_is_used(kinds: Sequence[str], seconds: float, nursery: trio.Nursery) -> None:
    network, begun = Addresses(nursery, kinds), trio.current_time()
    async with open_connection(network, NAME, 9092, client_id="me") as connection:
        assert trio.current_time() - begun == pytest.approx(seconds)
        assert await connection.call(MetadataRequest()) == ANSWER
    expected = [f"10.0.0.{number}" for number in range(1, kinds.index(LIVE) + 2)]
    assert [address for address, _ in network.tried] == expected


@pytest.mark.usefixtures("autojump_clock")
async def test_if_none_answers_the_fault_of_the_first_is_raised_in_time(nursery: trio.Nursery) -> None:
    with pytest.raises(ConnectionBroken, match=r"cannot connect to broker.example:9092: no answer within 5 s"):
        async with open_connection(Addresses(nursery, [CLOSED, SILENT]), NAME, 9092, client_id="me", connect_timeout=5):
            pass
    with pytest.raises(NotServed, match=r"cannot connect to broker.example:9092: nothing listens there"):
        async with open_connection(Addresses(nursery, [CLOSED, OTHER]), NAME, 9092, client_id="me", connect_timeout=5):
            pass


class Three(TcpNetwork):
    """Real sockets, and a resolver for which one name has three addresses of the loopback."""

    async def addresses(self, host: str) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1", "127.0.0.3"] if host == NAME else [host]


async def test_a_real_address_that_accepts_and_stays_silent_costs_a_moment(nursery: trio.Nursery) -> None:
    network = Three()
    port = await nursery.start(serve, network, HANDLERS, "127.0.0.1", 0)
    [silent] = await trio.open_tcp_listeners(port, host="127.0.0.2")
    async with silent:
        with trio.fail_after(10):
            async with open_connection(network, NAME, port, client_id="me") as connection:
                assert await connection.call(MetadataRequest()) == ANSWER


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
async def test_an_address_is_not_looked_up(host: str) -> None:
    assert await TcpNetwork().addresses(host) == [host]


async def test_a_name_that_cannot_be_found_is_said(nursery: trio.Nursery) -> None:
    del nursery
    with pytest.raises(NotServed, match=r"the host no.such.host.invalid cannot be found"):
        async with open_connection(TcpNetwork(), "no.such.host.invalid", 9092, client_id="me"):
            pass
