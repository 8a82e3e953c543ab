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
) -> dict[int, BrokerLogDirs]:
    """Ask brokers, each on its own connection, and return the answers by id; none takes longer than `timeout` s."""
    answers: dict[int, BrokerLogDirs] = {}

    async def ask(broker: BrokerEndpoint) -> None:
        opening = open_connection(network, broker.host, broker.port, client_id="admin", connect_timeout=timeout)
        try:
            with trio.fail_after(timeout):
                async with opening as connection:
                    answers[broker.id] = BrokerLogDirs((await connection.call(request)).log_dirs)
        except (ApiError, WireError) as error:
            answers[broker.id] = BrokerLogDirs(fault=str(error))
        except trio.TooSlowError:
            answers[broker.id] = BrokerLogDirs(fault=f"broker {broker.id} did not answer within {timeout:g} s")

    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(ask, broker)
    return dict(sorted(answers.items()))
