"""The methods of the admin client that only controllers of Klamm can answer, as clients of Kafka clusters have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from transport.wire import UnsupportedApi

_NO_ROLLOUTS: Final = "Kafka has no rollouts, use `klamm rollout run`, which carries a plan out itself"


def refuse(call: str, instead: str) -> NoReturn:
    """Refuse a call that Kafka cannot answer. Raises UnsupportedApi."""
    raise UnsupportedApi(f"the brokers are Apache Kafka, which cannot answer {call}: {instead}")


def _refused(call: str, instead: str) -> Callable[..., Awaitable[NoReturn]]:
    """Return a method that refuses all calls."""

    async def method(*_: object, **__: object) -> NoReturn:
        refuse(call, instead)

    method.__name__, method.__doc__ = call, "Raise UnsupportedApi: only controllers of Klamm can answer this."
    return method


class KlammOnly:
    """Raises UnsupportedApi in each of the methods; see `AdminClient` for what they do."""

    list_reassignments = _refused(
        "list_reassignments", "Kafka gives them no identity, use list_partition_reassignments"
    )
    upload_rollout = _refused("upload_rollout", _NO_ROLLOUTS)
    start_rollout = _refused("start_rollout", _NO_ROLLOUTS)
    describe_rollouts = _refused("describe_rollouts", _NO_ROLLOUTS)
    change_rollout = _refused("change_rollout", _NO_ROLLOUTS)
    read_trace = _refused("read_trace", "Kafka keeps no trace of commits, use describe_reassignments")

    def describe_rollout_moves(self, *_: object, **__: object) -> NoReturn:
        """Raise UnsupportedApi: only controllers of Klamm can answer this."""
        refuse("describe_rollout_moves", _NO_ROLLOUTS)
