"""What an ACL keeps the controller from writing, where the controller must act as if it were written, or wait.

No watch fires when an ACL changes, so each entry is tried again after a while.
"""

from __future__ import annotations

from attrs import define, field

from controller.model import facts
from transport.metadata import Stray


@define
class Closed:
    """The subjects of writes that were rejected."""

    brokers: frozenset[int] = frozenset()
    """Registered brokers that are taken for dead: they lost their data, and that cannot be written."""

    strays: dict[Stray, None] = field(factory=dict)
    """Replicas that are needed again although their records stay: no strays while they are."""

    notifications: dict[str, None] = field(factory=dict)
    """The parents of notifications that have been processed, and stay."""

    markers: frozenset[str] = frozenset()
    """Topics with a marker of deletion that is not heeded, and stays."""

    early_markers: frozenset[str] = frozenset()
    """Topics with a marker of deletion that have not been loaded: it counts once they are."""

    def take(self, fact: facts.StrayFact | facts.BrokersKeptOut | facts.NotificationsKept | facts.MarkersKept) -> None:
        """Take a fact that was committed or observed."""
        match fact:
            case facts.BrokersKeptOut():
                self.brokers = fact.broker_ids
            case facts.StrayIgnored():
                self.strays[fact.stray] = None
            case facts.StrayLeft() | facts.StrayGone() | facts.StrayRecalled():
                self.strays.pop(fact.stray, None)
            case facts.StrayFailed() | facts.StrayOrdered() | facts.DeletionAnswered():
                pass
            case facts.NotificationsKept(parent=parent, are_kept=True):
                self.notifications[parent] = None
            case facts.NotificationsKept(parent=parent):
                self.notifications.pop(parent, None)
            case facts.MarkersKept():
                self.markers, self.early_markers = fact.names, fact.early
