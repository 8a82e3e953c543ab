"""Live brokers whose registration changes: another address, or another rack."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controller.events import BrokerChange, BrokerModifications, ControllerEvent
from tests.controller.conftest import TP, Bench
from transport.messages import BrokerEndpoint
from transport.metadata import BrokerRegistration
from transport.store import formats, paths
from transport.store.protocol import Set, StoreEvent, WatchFired, WatchKind


async def announce(bench: Bench, port: int, rack: str | None = None, storage_id: str | None = None) -> None:
    """Let broker 2 write other data into its registration."""
    data = formats.encode_broker(BrokerRegistration(2, "127.0.0.1", port, -1, rack, storage_id), 0)
    await bench.store.multi([Set(paths.broker(2), data, -1)])


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("event", [BrokerModifications(2), BrokerChange()], ids=str)
async def test_a_broker_that_moves_keeps_its_epoch_and_everyone_is_told(bench: Bench, event: ControllerEvent) -> None:
    await bench.start((1, 2), (2, 1))
    before, epoch = dict(bench.context.leadership), bench.context.brokers[2].epoch
    await announce(bench, 7777, "r2")
    await bench.handle(event)
    assert bench.context.brokers[2] == BrokerRegistration(2, "127.0.0.1", 7777, epoch, "r2")
    [told] = bench.seen.published
    assert told in bench.seen.metadata()
    [told] = bench.seen.metadata()
    assert (told.brokers, told.partitions) == (None, ())
    assert told.live_brokers is not None
    assert told.live_brokers[1] == BrokerEndpoint(2, "127.0.0.1", 7777, "r2")
    assert bench.context.leadership == before
    assert bench.seen.commits == []


@pytest.mark.requirement("D5")
async def test_registrations_are_watched_from_the_start_and_again_after_each_change(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    fired: list[StoreEvent] = []
    bench.store.subscribe(fired.append)
    for port in (7777, 7778):
        await announce(bench, port)
        assert fired == [WatchFired(paths.broker(2), WatchKind.CHANGED)]
        fired.clear()
        await bench.handle(BrokerModifications(2))
        assert bench.context.brokers[2].port == port
    await bench.revive(3)
    fired.clear()
    await bench.store.multi([Set(paths.broker(3), b"{}", -1)])
    assert fired == [WatchFired(paths.broker(3), WatchKind.CHANGED)]


@pytest.mark.requirement("D5")
async def test_what_does_not_concern_a_known_incarnation_changes_nothing(bench: Bench) -> None:
    await bench.start((1, 2), storage_id="s")
    known = dict(bench.context.brokers)
    await announce(bench, known[2].port, storage_id="another")  # a live broker does not change its disk
    await bench.handle(BrokerModifications(2))
    await bench.handle(BrokerModifications(9))
    await bench.store.multi([Set(paths.broker(2), b"{}", -1)])
    with capture_logs() as logs:
        await bench.handle(BrokerModifications(2))
    assert [log["event"] for log in logs] == ["a live broker's registration cannot be used"]
    await bench.unregister(2)
    await bench.handle(BrokerModifications(2))
    assert bench.context.brokers == known
    assert bench.seen.published == []


@pytest.mark.requirement("D5")
async def test_a_new_incarnation_at_another_address_is_left_to_broker_change(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.unregister(2)
    await bench.register(2)
    await announce(bench, 7777)
    known = bench.context.brokers[2]
    await bench.handle(BrokerModifications(2))
    assert bench.context.brokers[2] == known
    await bench.handle(BrokerChange())
    assert bench.context.brokers[2].port == 7777
    assert bench.context.brokers[2].epoch > known.epoch
    assert bench.context.leadership[TP].isr == (1,)
