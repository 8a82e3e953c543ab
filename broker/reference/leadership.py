"""What a leader knows of its partition: the ISR, the proposal under way, its followers' progress. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from math import inf
from typing import Final

from attrs import evolve

from broker.reference.isr import NO_PROGRESS, FollowerProgress, next_high_watermark
from transport.errors import ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionResult, PartitionState

REFUSAL_PAUSE_SECONDS: Final = 1.0
"""The time before a leader again proposes a replica that the controller refused to add to the ISR."""

_NOT_WRITTEN: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INVALID_REQUEST)
_OVERTAKEN: Final = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)


class Settled(Enum):
    """What became of a proposal."""

    DONE = "adopted, dropped, or no longer ours"
    TRY_AGAIN = "the outcome is not known"


class Leadership:
    """One broker's leadership of one partition, from when it began to lead until another does.

    A bump of the leader epoch under the same leader goes on with it. While a proposal is under way, the high watermark
    is held by the committed ISR and the proposed one together, the maximal ISR (KIP-497).
    """

    def __init__(
        self,
        broker_id: int,
        state: PartitionState,
        log_end: int,
        now: float,
        *,
        max_lag: float,
        is_live: Callable[[int], bool],
    ) -> None:
        """Begin at `log_end` and at `now`; `max_lag` in seconds, `is_live` tells whether a broker is."""
        self._broker_id = broker_id
        self._max_lag = max_lag
        self._is_live = is_live
        self._pending: AlterPartitionItem | None = None
        self._is_overtaken = False
        self._pause_until = now
        self._refused: dict[int, float] = {}
        """The replicas of refused proposals, and when each may be proposed again."""
        self._progress: dict[int, FollowerProgress] = {}
        self.state = state
        self._begin_epoch(log_end, now)

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR and what a pending proposal would add."""
        proposed = self._pending.new_isr if self._pending is not None else ()
        return self.state.isr + tuple(r for r in proposed if r not in self.state.isr)

    @property
    def is_overtaken(self) -> bool:
        """Whether the controller answered that it knows a newer state, which has not come yet."""
        return self._is_overtaken

    def renew(self, state: PartitionState, log_end: int, now: float) -> None:
        """Take the controller's news: a higher leader epoch, or a newer ISR or replica set under the same.

        News from before the latest answer to a proposal are no news.
        """
        begins = state.leader_epoch > self.state.leader_epoch
        others_led = state.leader_epoch > self.state.leader_epoch + 1
        if not begins and state.partition_epoch < self.state.partition_epoch:
            return
        if begins or state.partition_epoch > self.state.partition_epoch:
            self._forget_proposal()  # it names older epochs, so it cannot be written any more
            self._refused.clear()
        self.state = state
        if begins:
            if others_led:  # perhaps, and then followers may have truncated since
                self._progress = {}
            self._begin_epoch(log_end, now)

    def knows(self, replica: int) -> bool:
        """Tell whether a broker is a replica of this partition."""
        return replica in self.state.replicas or replica in self.state.isr

    def record_fetch(self, follower: int, offset: int, log_end: int, now: float) -> bool:
        """Take note that a follower fetched from `offset`, after its log was found to agree with the leader's.

        Return whether that may call for a change of the ISR, or let the high watermark rise.
        """
        before = self._of(follower)
        self._progress[follower] = before.after_fetch(offset, log_end, now)
        return offset != before.log_end or follower not in self.state.isr

    def high_watermark(self, current: int, log_end: int, now: float) -> int:
        """Return the high watermark.

        It also waits for a live replica that keeps up though it is not in the ISR: else one could never join while
        the leader does not rest.
        """
        promised = [*self.maximal_isr, *(r for r in self._outside_isr() if self._of(r).keeps_up(now, self._max_lag))]
        return next_high_watermark(current, [log_end, *(self._of(r).log_end for r in promised if r != self._broker_id)])

    def propose(self, high_watermark: int, log_end: int, now: float) -> AlterPartitionItem | None:
        """Return the change of the ISR that is due, which is pending from then on; None if there is none.

        A member outside the replica set is kept as long as it keeps up, and does not come back (KAFKA-9672). There is
        nothing to recover after an unclean election, so every proposal says RECOVERED (KIP-704).
        """
        if self._pending is not None or now < self._pause_until:
            return None
        new_isr = self._wanted_isr(high_watermark, log_end, now)
        if new_isr == self.state.isr:
            return None
        state = self.state
        self._pending = AlterPartitionItem(
            state.topic, state.topic_id, state.partition, state.leader_epoch, new_isr, state.partition_epoch
        )
        return self._pending

    def settle(self, item: AlterPartitionItem, result: AlterPartitionResult, now: float) -> Settled:
        """Take the controller's answer to a proposal.

        After an answer that says nothing about whether it was written, the proposal stays pending and is to be sent
        again. If the state that it builds on is overtaken, it stays pending until the controller's news arrive,
        because the high watermark must not run ahead of an ISR that is not known.
        """
        if item != self._pending:
            return Settled.DONE
        if result.error is ErrorCode.NONE:
            self._adopt(result)
        elif result.error in _NOT_WRITTEN:
            self._forget_proposal()
            self._hold_off(item, now + REFUSAL_PAUSE_SECONDS)
        elif result.error in _OVERTAKEN:
            self._is_overtaken = True
        else:
            return Settled.TRY_AGAIN
        return Settled.DONE

    def _hold_off(self, item: AlterPartitionItem, until: float) -> None:
        """Leave out the replicas that a refused proposal would have added: any of them may be the reason."""
        joining = [r for r in item.new_isr if r not in self.state.isr]
        self._refused.update(dict.fromkeys(joining, until))
        if not joining:
            self._pause_until = until

    def _adopt(self, result: AlterPartitionResult) -> None:
        self._forget_proposal()
        for replica in result.isr:
            self._refused.pop(replica, None)
        self.state = evolve(
            self.state,
            isr=result.isr,
            partition_epoch=result.partition_epoch,
            leader_recovery_state=result.leader_recovery_state,
        )

    def _forget_proposal(self) -> None:
        self._pending = None
        self._is_overtaken = False

    def _begin_epoch(self, log_end: int, now: float) -> None:
        self._epoch_start = log_end
        state = self.state
        self._progress = {
            follower: self._of(follower).at_new_leader_epoch(in_isr=follower in state.isr, leader_end=log_end, now=now)
            for follower in (*state.replicas, *(r for r in state.isr if r not in state.replicas))
            if follower != self._broker_id
        }

    def _wanted_isr(self, high_watermark: int, log_end: int, now: float) -> tuple[int, ...]:
        def stays(member: int) -> bool:
            return member == self._broker_id or not self._of(member).is_lagging(log_end, now, self._max_lag)

        def may_join(replica: int) -> bool:
            progress = self._of(replica)
            return progress.keeps_up(now, self._max_lag) and progress.is_in_sync(high_watermark, self._epoch_start)

        return (*filter(stays, self.state.isr), *self._not_refused(filter(may_join, self._outside_isr()), now))

    def _not_refused(self, joining: Iterable[int], now: float) -> list[int]:
        """Return the replicas to propose together: all that were not refused, else one refused whose pause is over."""
        candidates = list(joining)
        fresh = [r for r in candidates if r not in self._refused]
        due = sorted((r for r in candidates if self._refused.get(r, inf) <= now), key=self._refused.__getitem__)
        return fresh or due[:1]

    def _outside_isr(self) -> list[int]:
        isr = self.maximal_isr
        return [r for r in self.state.replicas if r not in isr and r != self._broker_id and self._is_live(r)]

    def _of(self, follower: int) -> FollowerProgress:
        return self._progress.get(follower, NO_PROGRESS)
