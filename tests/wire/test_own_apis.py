"""The apis that the author of a service adds to ours."""

from __future__ import annotations

import pytest
import trio

from transport.messages import Api, MetadataRequest, Request
from transport.network import TcpNetwork
from transport.wire import UnsupportedApi, open_connection, serve
from transport.wire.apis import ApiTable

HOST = "127.0.0.1"


class Double(Request[int], frozen=True):
    number: int


class Treble(Request[int], frozen=True):
    number: int


OWN = (Api(10_000, "Double", Double, int),)


async def double(request: Double) -> int:
    return 2 * request.number


async def test_a_service_answers_its_own_api(nursery: trio.Nursery) -> None:
    port = await nursery.start(lambda task_status: serve(TcpNetwork(), {Double: double}, HOST, 0, own_apis=OWN,
                                                         task_status=task_status))  # fmt: skip
    async with open_connection(TcpNetwork(), HOST, port, client_id="me", own_apis=OWN) as connection:
        assert await connection.call(Double(21)) == 42
        with pytest.raises(UnsupportedApi):
            await connection.call(MetadataRequest())


async def test_a_server_without_it_offers_no_own_api(nursery: trio.Nursery) -> None:
    port = await nursery.start(serve, TcpNetwork(), {}, HOST, 0)
    async with open_connection(TcpNetwork(), HOST, port, client_id="me", own_apis=OWN) as connection:
        with pytest.raises(UnsupportedApi, match="does not offer Double"):
            await connection.call(Double(21))


async def test_a_handler_without_an_api_is_refused_at_start() -> None:
    with pytest.raises(ValueError, match="no api has the request Double: give it a row in own_apis"):
        await serve(TcpNetwork(), {Double: double}, HOST, 0)


@pytest.mark.parametrize(
    "clashing",
    [
        Api(9_999, "Treble", Treble, int),
        Api(10_000, "Treble", Treble, int),
        Api(10_001, "Double again", Double, int),
        Api(10_001, "Metadata again", MetadataRequest, int),
    ],
)
def test_own_apis_do_not_clash(clashing: Api) -> None:
    with pytest.raises(ValueError, match="api"):
        ApiTable.of((*OWN, clashing))
