"""`--throttle auto` of a rollout that is carried out from outside: see `controller.rollout.adapting`."""

from __future__ import annotations

from collections.abc import Collection

import trio
from attrs import define

from controller.admin.move_admin import MoveAdmin
from controller.rollout.adapting import FIRST, SECONDS, adapted, fault_of
from klamm.cli.units import rate as in_words
from transport.metadata import TopicPartition


@define
class Adapting:
    """Finds the rate of a throttle, in bytes per second of each broker."""

    rate: int = FIRST
    _next: float = float("-inf")

    async def look(
        self, admin: MoveAdmin, brokers: Collection[int], lagging: Collection[TopicPartition], copied: float | None
    ) -> str | None:
        """Change the rate if it is time; return why it was halved, None if it was not.

        Args:
            admin: The cluster.
            brokers: Those that are asked, as they copy.
            lagging: The partitions that lack live replicas, and are not being moved.
            copied: The bytes per second that are copied in all, None if that is not known.
        """
        if trio.current_time() < self._next or not brokers:
            return None
        began = trio.current_time()
        told = await admin.describe_log_dirs(sorted(brokers), ())
        seconds = trio.current_time() - began
        self._next = trio.current_time() + SECONDS
        silent = [broker for broker, answer in told.items() if answer.fault]
        why = fault_of(seconds, silent, lagging)
        self.rate = adapted(self.rate, copied, why)
        return None if why is None else f"throttle lowered to {in_words(self.rate)}: {why}"
