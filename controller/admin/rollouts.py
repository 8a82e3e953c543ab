"""The requests of administrators about rollouts that the controller of a cluster carries out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence

from attrs import frozen

from controller.admin.active_controller import ActiveController
from controller.rollout.moves import Move
from transport import messages
from transport.messages import UNKNOWN
from transport.messages.rollouts import MOVES_OF_A_PART


@frozen
class RolloutAdmin(ActiveController):
    """Hands plans over to the controller, and gives orders to their rollouts. All but orders can be repeated."""

    async def upload_rollout(
        self,
        name: str,
        digest: str,
        moves: Sequence[messages.RolloutMove],
        *,
        skips: bool = False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> tuple[messages.PartitionError, ...]:
        """Upload a plan; nothing begins. Return the moves that cannot be made, or whose partition has changed.

        Unless they are skipped, the plan cannot be started then. `progress` is told the moves uploaded so far.
        """
        refused: list[messages.PartitionError] = []
        for first in range(0, len(moves), MOVES_OF_A_PART):
            part = tuple(moves[first : first + MOVES_OF_A_PART])
            answer = await self._ask(messages.UploadRolloutRequest(name, digest, first, part, skips))
            refused += answer.left_out
            progress(first + len(part))
        return tuple(refused)

    async def start_rollout(
        self, name: str, digest: str, total: int, settings: messages.RolloutSettings, by: str = ""
    ) -> messages.StartRolloutResponse:
        """Start the rollout of a plan that was uploaded."""
        return await self._ask(messages.StartRolloutRequest(name, digest, total, settings, by))

    async def describe_rollouts(self, names: Collection[str] | None = None) -> tuple[messages.RolloutDescription, ...]:
        """Return rollouts, all or those of these names that exist: first those that run or wait."""
        wanted = None if names is None else tuple(names)
        return (await self._ask(messages.DescribeRolloutsRequest(wanted))).rollouts

    async def describe_rollout_moves(
        self, name: str, states: Iterable[str] | None = None
    ) -> AsyncIterator[messages.RolloutMoveState]:
        """Yield the moves of a rollout, of all states or of these, in the order of the plan."""
        wanted = None if states is None else tuple(states)
        part = 0
        while part != UNKNOWN:
            answer = await self._ask(messages.DescribeRolloutMovesRequest(name, wanted, part))
            for move in answer.moves:
                yield move
            part = answer.next

    async def change_rollout(
        self,
        name: str,
        order: messages.RolloutOrder,
        changes: messages.RolloutChanges | None = None,
        *,
        without_dead: bool = False,
        by: str = "",
    ) -> messages.RolloutDescription | None:
        """Give an order to a rollout, and return it; None if it was removed.

        Raises OutcomeUnknown if the answer is lost: then describe the rollout.
        """
        changes = changes or messages.RolloutChanges()
        request = messages.ChangeRolloutRequest(name, order, changes, without_dead, by)
        return (await self._change(request)).rollout


def rollout_moves(moves: Iterable[Move], topic_ids: Callable[[str], str]) -> list[messages.RolloutMove]:
    """Return moves as they are uploaded."""
    return [
        messages.RolloutMove(move.topic, move.partition, move.after, move.before, topic_ids(move.topic), move.size)
        for move in moves
    ]
