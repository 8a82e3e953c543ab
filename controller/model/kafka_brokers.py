"""The knowledge of a controller about Apache Kafka's brokers that is not in their registrations."""

from __future__ import annotations

from collections.abc import Collection

from attrs import define, field

from controller.model.facts import ControllerRegistered, KafkaFact, LeaderOvertaken, ReleaseSeen
from transport.kafka.releases import WITHOUT_STORED_ISRS, Protocol, Release, TopicDefaults
from transport.metadata import LeaderAndIsr, Listener, TopicPartition


@define
class KafkaBrokers:
    """The releases of live brokers, and the registration of the controller among them.

    `listeners` are the controller's addresses for brokers.
    """

    listeners: tuple[Listener, ...] = ()
    releases: dict[int, Release] = field(factory=dict)
    """By broker id. A broker to which there has been no connection yet is missing."""

    is_registered: bool = True
    """False once it is certain that the controller has no registration."""

    min_isr: int | None = None
    """The min.insync.replicas that brokers have in their files, as the first of them says; None if none has said it."""

    overtaken: dict[TopicPartition, LeaderAndIsr] = field(factory=dict)
    """The partitions whose leaders may have forgotten a proposal, with their leadership then."""

    def take(self, fact: KafkaFact) -> None:
        """Take a fact that was committed or observed."""
        match fact:
            case ReleaseSeen():
                self.releases[fact.broker_id] = fact.release
                told = (release.min_isr for _, release in sorted(self.releases.items()))
                self.min_isr = next((value for value in told if value is not None), self.min_isr)
            case ControllerRegistered():
                self.is_registered = fact.exists
            case LeaderOvertaken() if fact.leadership is None:
                self.overtaken.pop(fact.tp, None)
            case LeaderOvertaken():
                self.overtaken[fact.tp] = fact.leadership

    def forget(self, broker_id: int) -> None:
        """Forget a broker that is gone: the next one of its id may be of another release."""
        self.releases.pop(broker_id, None)

    def need_registration(self, live: Collection[int]) -> bool | None:
        """Return whether a live broker looks for the controller's registration; None while that is unknown."""
        if any(release.needs_registration for release in self.releases.values()):
            return True
        return None if any(broker_id not in self.releases for broker_id in live) else False

    def write_isrs(self, live: Collection[int], otherwise: Protocol | None) -> bool:
        """Return whether a live broker may write ISRs to the store itself: one whose protocol is old or unknown.

        `otherwise` is the protocol of a broker that does not say.
        """
        releases = [self.releases.get(broker_id) for broker_id in live]
        protocols = [(None if release is None else release.protocol) or otherwise for release in releases]
        return any(protocol is None or protocol < WITHOUT_STORED_ISRS for protocol in protocols)

    def topic_defaults(self) -> TopicDefaults:
        """Return the settings of the first broker that says them, which are those of all by Kafka's documentation."""
        releases = (release for _, release in sorted(self.releases.items()))
        return next((one.topic_defaults for one in releases if one.topic_defaults is not None), TopicDefaults())
