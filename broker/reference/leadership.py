"""The leader's side of a partition: the ISR, the pending proposal, the progress of followers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from math import inf
from typing import Final

from msgspec.structs import replace

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
    """The outcome of a proposal."""

    DONE = "adopted, dropped, or no longer pending"
    TRY_AGAIN = "the outcome is unknown"


class Leadership:
    """One broker's leadership of one partition, which lasts until another broker leads.

    It continues when the leader epoch rises under the same leader. While a proposal is pending, the high watermark
    waits for the committed and the proposed ISR together, the maximal ISR (KIP-497).
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
        """Start at `log_end` and at `now`. `max_lag` is in seconds; `is_live` returns whether a broker is alive."""
        self._broker_id = broker_id
        self._max_lag = max_lag
        self._is_live = is_live
        self._pending: AlterPartitionItem | None = None
        self._is_overtaken = False
        self._pause_until = now
        self._refused: dict[int, float] = {}
        """The replicas of refused proposals, with the time when each may be proposed again."""
        self._progress: dict[int, FollowerProgress] = {}
        self.state = state
        self._begin_epoch(log_end, now)

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR and the replicas that a pending proposal adds."""
        proposed = self._pending.new_isr if self._pending is not None else ()
        return self.state.isr + tuple(r for r in proposed if r not in self.state.isr)

    @property
    def is_overtaken(self) -> bool:
        """Whether the controller answered that it knows a newer state, which has not arrived yet."""
        return self._is_overtaken

    def is_pending(self, item: AlterPartitionItem) -> bool:
        """Return whether a proposal has not been settled."""
        return item == self._pending

    def renew(self, state: PartitionState, log_end: int, now: float) -> None:
        """Adopt a state from the controller: a higher leader epoch, or a newer ISR or replica set under the same epoch.

        A state that is older than the latest answer to a proposal is ignored.
        """
        begins = state.leader_epoch > self.state.leader_epoch
        others_led = state.leader_epoch > self.state.leader_epoch + 1
        if not begins and state.partition_epoch < self.state.partition_epoch:
            return
        if begins or state.partition_epoch > self.state.partition_epoch:
            self._forget_proposal()  # it is based on older epochs, so the controller can no longer accept it
            self._refused.clear()
        self.state = state
        if begins:
            # Another leader in between may have made followers truncate.
            if others_led:
                self._progress = {}
            self._begin_epoch(log_end, now)

    def knows(self, replica: int) -> bool:
        """Return whether a broker is a replica of this partition."""
        return replica in self.state.replicas or replica in self.state.isr

    def record_fetch(self, follower: int, offset: int, log_end: int, now: float) -> bool:
        """Record a follower's fetch from `offset`, if its log agrees with the leader's up to there.

        Return whether the ISR or the high watermark may have to change.
        """
        before = self._of(follower)
        self._progress[follower] = before.after_fetch(offset, log_end, now)
        return offset != before.log_end or follower not in self.state.isr

    def high_watermark(self, current: int, log_end: int, now: float) -> int:
        """Return the high watermark.

        It also waits for live replicas outside the ISR that keep up. Otherwise none could join while records keep
        arriving.
        """
        joining = [r for r in self._outside_isr() if self._of(r).keeps_up(now, self._max_lag)]
        followers = [r for r in (*self.maximal_isr, *joining) if r != self._broker_id]
        log_ends = [self._of(r).log_end for r in followers]
        return next_high_watermark(current, [log_end, *log_ends])

    def propose(self, high_watermark: int, log_end: int, now: float) -> AlterPartitionItem | None:
        """Return the change of the ISR that is due, which is pending after that; None if there is none.

        A member outside the replica set is kept while it keeps up, and never added again (KAFKA-9672). There is nothing
        to recover after an unclean election, so every proposal says RECOVERED (KIP-704).
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
        """Process the controller's answer to a proposal.

        If the answer leaves open whether the proposal was written, it stays pending and must be sent again. If the
        proposal is based on an old state, it stays pending until the newer state arrives, because the high watermark
        must not run ahead of an unknown ISR.
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
        """Hold back the replicas that a refused proposal would have added; any of them may be the reason."""
        joining = [r for r in item.new_isr if r not in self.state.isr]
        self._refused.update(dict.fromkeys(joining, until))
        if not joining:
            self._pause_until = until

    def _adopt(self, result: AlterPartitionResult) -> None:
        self._forget_proposal()
        for replica in result.isr:
            self._refused.pop(replica, None)
        self.state = replace(
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
        members = dict.fromkeys((*state.replicas, *state.isr))
        followers = [member for member in members if member != self._broker_id]
        self._progress = {
            follower: self._of(follower).at_new_leader_epoch(in_isr=follower in state.isr, leader_end=log_end, now=now)
            for follower in followers
        }

    def _wanted_isr(self, high_watermark: int, log_end: int, now: float) -> tuple[int, ...]:
        def stays(member: int) -> bool:
            return member == self._broker_id or not self._of(member).is_lagging(log_end, now, self._max_lag)

        def may_join(replica: int) -> bool:
            progress = self._of(replica)
            return progress.keeps_up(now, self._max_lag) and progress.is_in_sync(high_watermark, self._epoch_start)

        staying = filter(stays, self.state.isr)
        joining = filter(may_join, self._outside_isr())
        return (*staying, *self._not_refused(joining, now))

    def _not_refused(self, joining: Iterable[int], now: float) -> list[int]:
        """Return the replicas to propose together: all never refused, else one refused replica whose pause is over."""
        candidates = list(joining)
        fresh = [r for r in candidates if r not in self._refused]
        due = sorted((r for r in candidates if self._refused.get(r, inf) <= now), key=self._refused.__getitem__)
        return fresh or due[:1]

    def _outside_isr(self) -> list[int]:
        isr = self.maximal_isr
        return [r for r in self.state.replicas if r not in isr and r != self._broker_id and self._is_live(r)]

    def _of(self, follower: int) -> FollowerProgress:
        return self._progress.get(follower, NO_PROGRESS)
