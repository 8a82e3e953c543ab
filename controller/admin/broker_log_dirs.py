"""Describing the log directories of brokers (KIP-113), concurrently, so that a silent one does not delay others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import trio
from attrs import field, frozen

from transport.errors import ApiError, ErrorCode, in_words
from transport.kafka.volume import ToldLogDir, Volume
from transport.messages import BrokerEndpoint, DescribeLogDirsRequest, LogDir, LogDirReplica
from transport.network import Network
from transport.wire import WireError, open_connection


@frozen
class BrokerLogDirs:
    """A broker's log directories as it described them, or in `fault` why there is no answer.

    `volumes` has what is known of the file system of each directory, by its path, and `futures` the logs that are on
    their way to it from another directory of the broker: Kafka's brokers tell these.
    """

    log_dirs: tuple[LogDir, ...] = ()
    fault: str = ""
    volumes: Mapping[str, Volume] = field(factory=dict)
    futures: Mapping[str, tuple[LogDirReplica, ...]] = field(factory=dict)
    is_denied: bool = False
    """Whether the fault is that we may not describe the cluster."""

    @classmethod
    def of(cls, told: Sequence[ToldLogDir]) -> BrokerLogDirs:
        """Return what a broker of Kafka's told."""
        return cls(
            tuple(one.log_dir for one in told),
            volumes={one.log_dir.path: one.volume for one in told},
            futures={one.log_dir.path: one.futures for one in told if one.futures},
        )


def is_denial(error: Exception) -> bool:
    """Return whether an error of a broker means that we may not describe the cluster."""
    return isinstance(error, ApiError) and error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def all_denied(dirs: Mapping[int, BrokerLogDirs]) -> bool:
    """Return whether all brokers refuse to describe their log directories to us."""
    return bool(dirs) and all(told.is_denied for told in dirs.values())


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

    ask_one = _ask_kafkas if are_kafkas else _ask_ours

    async def ask(broker: BrokerEndpoint) -> None:
        try:
            with trio.fail_after(timeout):
                answers[broker.id] = await ask_one(network, broker, request, timeout)
        except (ApiError, WireError) as error:
            answers[broker.id] = BrokerLogDirs(fault=in_words(error), is_denied=is_denial(error))
        except trio.TooSlowError:
            answers[broker.id] = BrokerLogDirs(fault=f"broker {broker.id} did not answer within {timeout:g} s")

    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(ask, broker)
    return dict(sorted(answers.items()))


async def _ask_ours(
    network: Network, broker: BrokerEndpoint, request: DescribeLogDirsRequest, seconds: float
) -> BrokerLogDirs:
    opening = open_connection(network, broker.host, broker.port, client_id="admin", connect_timeout=seconds)
    async with opening as connection:
        told = (await connection.call(request, timeout=seconds)).log_dirs
        return BrokerLogDirs(told, volumes={one.path: Volume(one.total, one.usable) for one in told})


async def _ask_kafkas(
    network: Network, broker: BrokerEndpoint, request: DescribeLogDirsRequest, seconds: float
) -> BrokerLogDirs:
    from transport.kafka.log_dirs import open_log_dirs  # noqa: PLC0415  the messages of Kafka take long to import

    opening = open_log_dirs(network, broker.host, broker.port, client_id="admin", connect_timeout=seconds)
    async with opening as connection:
        return BrokerLogDirs.of(await connection.ask(request, timeout=seconds))
