"""Strays: replicas that their brokers must delete, because their topic is gone or they are assigned no longer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import define, field

from controller.model import facts
from controller.model.facts import Replica
from transport.metadata import Stray


@define(eq=False)
class Strays(Mapping[Stray, int]):
    """The strays that the store records, each with a leader epoch: see `StrayLeft`."""

    failed: dict[Stray, None] = field(factory=dict)
    """Strays that their brokers could not delete and have not been ordered to delete again."""

    recalled: dict[Replica, None] = field(factory=dict)
    """Replicas that are needed again while an order to delete them may still be in flight."""

    _epochs: dict[Stray, int] = field(factory=dict, init=False)

    def __getitem__(self, stray: Stray) -> int:
        return self._epochs[stray]

    def __contains__(self, stray: object) -> bool:
        return stray in self._epochs

    def __iter__(self) -> Iterator[Stray]:
        return iter(self._epochs)

    def __len__(self) -> int:
        return len(self._epochs)

    def take(self, fact: facts.StrayFact, live: Collection[int]) -> None:
        """Take a fact that was committed or observed; `live` are the ids of the brokers with an address."""
        stray = fact.stray
        match fact:
            case facts.StrayLeft():
                self._epochs[stray] = fact.leader_epoch
            case facts.StrayFailed():
                self.failed[stray] = None
            case facts.StrayOrdered():
                self.failed.pop(stray, None)
            case facts.StrayGone():
                self._forget(stray)
            case facts.StrayRecalled():
                # If no order is in flight, no answer will come to end the recall.
                if stray.broker_id in live and stray not in self.failed:
                    self.recalled[stray.replica] = None
                self._forget(stray)
            case facts.DeletionAnswered():
                self.recalled.pop(stray.replica, None)
            case facts.StrayIgnored():
                pass

    def forget_broker(self, broker_id: int) -> None:
        """Forget the orders in flight to a broker's incarnation."""
        self.recalled = {replica: None for replica in self.recalled if replica[1] != broker_id}

    def _forget(self, stray: Stray) -> None:
        self._epochs.pop(stray, None)
        self.failed.pop(stray, None)
