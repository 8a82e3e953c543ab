"""The min.insync.replicas of topics that controllers may know, which learn of a change only after a while."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Final

import trio
from attrs import define, field

from simulator.store.durable import Durable
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.store import formats, paths
from transport.store.protocol import Check, Op

_STALE_SECONDS: Final = 60.0
"""Seconds for which a controller may use a former value: the notification of the change waits in its queue."""

_DEFAULT: Final = paths.broker_config(None)
_BELOW_TOPIC_CONFIGS: Final = f"{paths.TOPIC_CONFIGS}/"


@define
class MinIsrs:
    """The time until which each setting had each of its values; None inherits."""

    static: int = 1
    """The controllers' own setting."""

    _until: dict[str, dict[int | None, float]] = field(factory=dict, init=False)

    def committed(self, ops: Sequence[Op], durable: Durable, *, is_announced: bool) -> None:
        """Record the settings that a commit alters, right after it took effect.

        A change that is not announced may be known at any later time, or never.
        """
        for op in ops:
            is_setting = op.path == _DEFAULT or op.path.startswith(_BELOW_TOPIC_CONFIGS)
            if is_setting and not isinstance(op, Check):
                until = trio.current_time() + _STALE_SECONDS if is_announced else inf
                values = self._until.setdefault(op.path, {None: inf})
                former = {value: min(end, until) for value, end in values.items()}
                now = _value(op.path, durable)
                former.pop(now, None)
                self._until[op.path] = {now: inf, **former}

    def of(self, topic: str) -> tuple[int, ...]:
        """Return the values that a topic may have, the latest first."""
        own = self._values(paths.topic_config(topic))
        inherited = [self.static if value is None else value for value in self._values(_DEFAULT)]
        found = [value for each in own for value in (inherited if each is None else [each])]
        return tuple(dict.fromkeys(found))

    def _values(self, path: str) -> list[int | None]:
        now = trio.current_time()
        return [value for value, until in self._until.get(path, {None: inf}).items() if until >= now]


def _value(path: str, durable: Durable) -> int | None:
    znode = durable.tree.read(path)
    with suppress(formats.UndecodableZnode, ValueError):
        text = None if znode is None else formats.decode_config(path, znode.data).get(MIN_INSYNC_REPLICAS)
        return None if text is None else max(int(text), 1)
    return None
