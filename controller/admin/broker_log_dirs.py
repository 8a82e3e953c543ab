"""Describing the log directories of brokers (KIP-113), concurrently, so that a silent one does not delay others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import trio
from attrs import field, frozen

from transport.errors import ApiError
from transport.kafka.volume import Volume
from transport.messages import BrokerEndpoint, DescribeLogDirsRequest, LogDir
from transport.network import Network
from transport.wire import WireError, open_connection


@frozen
class BrokerLogDirs:
    """A broker's log directories as it described them, or in `fault` why there is no answer.

    `volumes` has what is known of the file system of each directory, by its path: Kafka's brokers tell it.
    """

    log_dirs: tuple[LogDir, ...] = ()
    fault: str = ""
    volumes: Mapping[str, Volume] = field(factory=dict)


async def ask_log_dirs(
    network: Network,
    brokers: Iterable[BrokerEndpoint],
    request: DescribeLogDirsRequest,
    *,
    timeout: float,  # noqa: ASYNC109  as everywhere on the wire
    are_kafkas: bool = False,
) -> dict[int, BrokerLogDirs]:
    """Ask brokers, each on its own connection, and return the answers by id; none takes longer than `timeout` s."""
    answers: dict[int, BrokerLogDirs] = {}

    describe = _of_kafkas if are_kafkas else _of_ours

    async def ask(broker: BrokerEndpoint) -> None:
        try:
            with trio.fail_after(timeout):
                answers[broker.id] = await describe(network, broker, request, timeout)
        except (ApiError, WireError) as error:
            answers[broker.id] = BrokerLogDirs(fault=str(error))
        except trio.TooSlowError:
            answers[broker.id] = BrokerLogDirs(fault=f"broker {broker.id} did not answer within {timeout:g} s")

    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(ask, broker)
    return dict(sorted(answers.items()))


async def _of_ours(
    network: Network, broker: BrokerEndpoint, request: DescribeLogDirsRequest, seconds: float
) -> BrokerLogDirs:
    opening = open_connection(network, broker.host, broker.port, client_id="admin", connect_timeout=seconds)
    async with opening as connection:
        return BrokerLogDirs((await connection.call(request, timeout=seconds)).log_dirs)


async def _of_kafkas(
    network: Network, broker: BrokerEndpoint, request: DescribeLogDirsRequest, seconds: float
) -> BrokerLogDirs:
    from transport.kafka.log_dirs import open_log_dirs  # noqa: PLC0415  the messages of Kafka take long to import

    opening = open_log_dirs(network, broker.host, broker.port, client_id="admin", connect_timeout=seconds)
    async with opening as connection:
        answer, volumes = await connection.describe(request, timeout=seconds)
    return BrokerLogDirs(answer.log_dirs, volumes=volumes)
