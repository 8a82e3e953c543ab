"""Describing the log directories of brokers (KIP-113), concurrently, so that a silent one does not delay others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import trio
from attrs import field, frozen

from transport.errors import ApiError
from transport.kafka.volume import Volume
from transport.messages import BrokerEndpoint, DescribeLogDirsRequest, LogDir
from transport.network import Network
from transport.wire import Connection, WireError, open_connection

if TYPE_CHECKING:
    from transport.kafka.log_dirs import LogDirsConnection


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

    async def ask(broker: BrokerEndpoint) -> None:
        opening = _opening(network, broker, timeout, are_kafkas=are_kafkas)
        try:
            with trio.fail_after(timeout):
                async with opening as connection:
                    answers[broker.id] = BrokerLogDirs((await connection.call(request, timeout=timeout)).log_dirs)
        except (ApiError, WireError) as error:
            answers[broker.id] = BrokerLogDirs(fault=str(error))
        except trio.TooSlowError:
            answers[broker.id] = BrokerLogDirs(fault=f"broker {broker.id} did not answer within {timeout:g} s")

    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(ask, broker)
    return dict(sorted(answers.items()))


def _opening(
    network: Network, broker: BrokerEndpoint, seconds: float, *, are_kafkas: bool
) -> AbstractAsyncContextManager[Connection | LogDirsConnection]:
    if not are_kafkas:
        return open_connection(network, broker.host, broker.port, client_id="admin", connect_timeout=seconds)
    from transport.kafka.log_dirs import open_log_dirs  # noqa: PLC0415  the messages of Kafka take long to import

    return open_log_dirs(network, broker.host, broker.port, client_id="admin", connect_timeout=seconds)
