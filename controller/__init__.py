"""The controller of a partitioned, replicated cluster: its decisions, and the service that makes them.

Call `run` in a trio nursery, or `run_asyncio` in an asyncio program. The controller's knowledge and decisions are pure
(`controller.model`), events are handled by generators of rounds (`controller.handlers`), and only
`controller.node.round_runner` commits, applies and publishes. `controller.channels` sends to brokers,
`controller.admin` is the side of administrators, and `controller.monitoring` exposes metrics, logs and state.
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
    # Imported lazily, so that the command's help does not wait for trio and kazoo.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
