"""The controller of a partitioned, replicated cluster: its decisions, and the service that takes them.

`run` it in a trio nursery or `run_asyncio` it in an asyncio program. What it knows and how it decides is pure
(`controller.model`), its events are handled by generators of rounds (`controller.handlers`), and
`controller.node.round_runner` alone commits, applies and publishes. Brokers are told through `controller.channels`,
administrators ask through `controller.admin`, and `controller.monitoring` shows what goes on.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing `typing` takes time in which Ctrl-C is not handled yet
if TYPE_CHECKING:
    from controller.asyncio_host import run_asyncio
    from controller.config import ControllerConfig
    from controller.embedding import ControllerIdInUse, run
    from controller.observation.observer import CommittedRound, DecidedRound, Observer, PublishedRound

__all__ = [
    "CommittedRound",
    "ControllerConfig",
    "ControllerIdInUse",
    "DecidedRound",
    "Observer",
    "PublishedRound",
    "run",
    "run_asyncio",
]

_HOMES = {
    "CommittedRound": "controller.observation.observer",
    "ControllerConfig": "controller.config",
    "ControllerIdInUse": "controller.embedding",
    "DecidedRound": "controller.observation.observer",
    "Observer": "controller.observation.observer",
    "PublishedRound": "controller.observation.observer",
    "run": "controller.embedding",
    "run_asyncio": "controller.asyncio_host",
}


def __getattr__(name: str) -> object:
    # Lazily, so that the command's help does not wait for trio and kazoo.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
