"""The knowledge on which the decisions of a controller rest: all that it has read and been told.

It follows from the store's answers and from the requests on the network, not from the controllers' memory. A controller
takes over what it reads in the middle of an event, so until the event's end both the old and the new count as known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from attrs import define, field

from simulator.model.view import Standing
from simulator.safety.log_reports import FailedReplicas, Incarnation
from simulator.store.durable import DecodeBroker
from transport.metadata import BrokerRegistration, TopicPartition, number_in
from transport.store import formats, paths
from transport.store.protocol import Znode

_BELOW_IDS: Final = f"{paths.BROKER_IDS}/"

_REMEMBERED: Final = 64
"""Number of requests for a controlled shutdown remembered."""


@define
class Knowledge:
    """The knowledge of one controller about brokers."""

    _decode: DecodeBroker = formats.decode_broker
    _may_wait: Callable[[TopicPartition, int], Collection[bool]] = lambda *_: (False,)
    """Returns whether a replica waits for the deletion of an earlier log, or both if that is not certain."""

    _storage_id: Callable[[int], str | None] = lambda _: None
    """Returns the storage id that is recorded of a broker, None if there is none that can be decoded."""

    _kept_out: dict[int, None] = field(factory=dict, init=False)
    """The brokers that the controller takes for dead: their loss of data could not be written or recorded."""

    _readings: list[dict[int, BrokerRegistration]] = field(factory=list, init=False)
    """The registrations as read before the event in progress, and then by each reading during it."""

    _unaddressable: list[dict[int, int]] = field(factory=list, init=False)
    """The epochs of the other live brokers, by each of these readings: those with a registration that is unusable.

    If a usable one of the same incarnation was read before in the same office, it stays in effect.
    """

    _is_listing: bool = field(default=False, init=False)
    _asked_to_leave: dict[Incarnation, None] = field(factory=dict, init=False)
    _leaving: dict[Incarnation, None] = field(factory=dict, init=False)
    """Those of them of which it is certain that the controller has granted the request."""

    logs: FailedReplicas = field(factory=FailedReplicas, init=False)

    # --- what changes it ------------------------------------------------------------------------------------------

    def took_office(self) -> None:
        """Forget what a controller forgets when it takes office."""
        self._readings.clear()
        self._unaddressable.clear()
        self._is_listing = False
        self._leaving.clear()
        self._kept_out.clear()
        self.logs.clear()

    def began_event(self) -> bool:
        """Take the last reading as known: an event has ended and the next one begins. Return whether it is news."""
        has_news = self._is_listing
        self._kept_out.update(dict.fromkeys(self.emptied()))
        del self._readings[:-1], self._unaddressable[:-1]
        self._is_listing = False
        return has_news

    def looked(self, asked: Sequence[str], found: Iterable[Znode | list[str] | None]) -> None:
        """Record an answer of the store, if it is about registrations."""
        if asked[0] == paths.BROKER_IDS:
            self._readings.append({})
            self._unaddressable.append({})
            self._is_listing = True
        elif self._is_listing and asked[0].startswith(_BELOW_IDS):
            for path, znode in zip(asked, found, strict=True):
                self._read(path, znode)

    def _read(self, path: str, znode: Znode | list[str] | None) -> None:
        broker_id = number_in(path.removeprefix(_BELOW_IDS))
        if broker_id is None or not isinstance(znode, Znode):
            return
        try:
            self._readings[-1][broker_id] = self._decode(broker_id, znode.data, znode.stat.czxid)
        except formats.UndecodableZnode:
            before = self._readings[-2].get(broker_id) if len(self._readings) > 1 else None
            if before is not None and before.epoch == znode.stat.czxid:
                self._readings[-1][broker_id] = before
            else:
                self._unaddressable[-1][broker_id] = znode.stat.czxid

    def asked_to_leave(self, broker_id: int, broker_epoch: int) -> None:
        """Record a request for a controlled shutdown, which may be granted at any time from now on."""
        self._asked_to_leave[broker_id, broker_epoch] = None
        if len(self._asked_to_leave) > _REMEMBERED:
            del self._asked_to_leave[next(iter(self._asked_to_leave))]

    def granted_shutdown(self) -> None:
        """Record that a request for a controlled shutdown is granted."""
        able = [each for each in self._asked_to_leave if each in self._known()]
        if len(able) == 1:
            self._leaving[able[0]] = None

    def took_over_reports(self, tps: Mapping[TopicPartition, tuple[str, int]]) -> None:
        """Record that reports about these partitions count from now on, by topic id and leader epoch."""
        for tp, (topic_id, leader_epoch) in tps.items():
            self.logs.taken_over(tp, topic_id, leader_epoch, self._known())

    def forgave(self, subjects: Sequence[TopicPartition]) -> None:
        """Record that replicas of these partitions, which failed to lead, may lead again: one for each mention."""
        for tp, count in Counter(subjects).items():
            self.logs.forgiven(tp, count, self._known())

    def _known(self) -> dict[Incarnation, None]:
        known = {(id_, broker.epoch): None for reading in self._readings for id_, broker in reading.items()}
        return known | {each: None for others in self._unaddressable for each in others.items()}

    # --- what it is -----------------------------------------------------------------------------------------------

    @property
    def brokers(self) -> Mapping[int, BrokerRegistration] | None:
        """The registrations as last read; None before the first reading in office."""
        return self._readings[-1] if self._readings else None

    def emptied(self) -> frozenset[int]:
        """Return the brokers that were last read with another storage than the recorded one.

        They are kept out until it is: what follows from their loss has to be written before.
        """
        return frozenset(filter(self._is_emptied, self.brokers or ()))

    def _is_emptied(self, broker_id: int) -> bool:
        broker = (self.brokers or {}).get(broker_id)
        recorded = None if broker is None or broker.storage_id is None else self._storage_id(broker_id)
        return recorded is not None and broker is not None and broker.storage_id != recorded

    def has_kept_out(self, broker_id: int) -> bool:
        """Return whether the controller keeps a broker out, or has kept it out in this office."""
        return broker_id in self._kept_out or self._is_emptied(broker_id)

    def views(self, tp: TopicPartition, replicas: Iterable[int]) -> Iterator[dict[int, Standing]]:
        """Yield the combinations of standings that the replicas of a partition may have, the likeliest first."""
        ids = list(dict.fromkeys(replicas))
        choices = [self._standings(tp, id_) for id_ in ids]
        for chosen in product(*choices):
            yield dict(zip(ids, chosen, strict=True))

    def _standings(self, tp: TopicPartition, broker_id: int) -> dict[Standing, None]:
        found: dict[Standing, None] = {}
        epochs: dict[int, None] = {}
        for reading, others in zip(reversed(self._readings), reversed(self._unaddressable), strict=True):
            broker = reading.get(broker_id)
            epochs[others.get(broker_id, -1) if broker is None else broker.epoch] = None
            if broker is not None:
                found |= self._standings_of((broker_id, broker.epoch), tp)
            elif broker_id in others:
                found |= self._standings_of_unaddressable((broker_id, others[broker_id]))
        # A broker that came back was gone in between, for its replicas to leave the ISRs.
        if len(epochs) > 1 or -1 in epochs or self._is_emptied(broker_id):
            found[Standing.DEAD] = None
        return found

    def _standings_of_unaddressable(self, incarnation: Incarnation) -> dict[Standing, None]:
        """Return the standings of a broker without an address, which may ask to leave all the same."""
        found: dict[Standing, None] = {}
        if incarnation not in self._leaving:
            found[Standing.UNADDRESSABLE] = None
        if incarnation in self._asked_to_leave:
            found[Standing.LEAVING] = None
        return found

    def _standings_of(self, incarnation: Incarnation, tp: TopicPartition) -> dict[Standing, None]:
        found: dict[Standing, None] = {}
        waits = self._may_wait(tp, incarnation[0])
        standings = self.logs.standings(tp, incarnation)
        is_logless = Standing.LOGLESS in standings or True in waits
        # A replica that does not follow may be taken for one whose log is lost, once its broker shuts down.
        may_leave = incarnation in self._asked_to_leave
        if is_logless or (Standing.STUCK in standings and may_leave):
            found[Standing.LOGLESS] = None
        for standing in standings if False in waits else ():
            if standing is Standing.STUCK:
                found[standing] = None
            elif standing is not Standing.LOGLESS:
                if incarnation not in self._leaving:
                    found[standing] = None
                if may_leave:
                    found[Standing.LEAVING] = None
        return found
