"""The ledger of acknowledged records: which disks must hold them, and which records may be lost."""

from __future__ import annotations

import pytest
import trio

from simulator.safety.registrations import STALE_SECONDS
from tests.simulation.histories import MOVING, TP, History
from transport.messages import ControlledShutdownRequest, Record
from transport.store import paths

pytestmark = pytest.mark.usefixtures("autojump_clock")


def produced() -> History:
    """Return a history with three acknowledged records and one more in transit."""
    h = History()
    h.append((1, 2, 3), b"a", b"b", b"c")
    h.acknowledge(0, b"a", b"b")
    h.acknowledge(2, b"c")
    h.append((1,), b"d")
    return h


@pytest.fixture
async def h() -> History:
    return produced()


async def test_records_that_are_where_they_must_be_are_not_lost(h: History) -> None:
    h.bump(leader=2, isr=(2, 3))
    h.truncate(1, 3)
    assert h.found is None
    assert h.safety.lost() == []


async def test_an_acknowledgement_of_what_a_member_of_the_isr_has_not_is_seen() -> None:
    h = History()
    h.append((1, 2), b"a")
    h.acknowledge(0, b"a")
    assert h.found == "the record of orders-0 at offset 0 was acknowledged, but broker 3 in the ISR lacks it"


async def test_two_records_at_one_offset_are_seen(h: History) -> None:
    for disk in h.safety.disks.values():
        for log in disk.logs.values():
            log.records[1] = Record(0, b"x")
    h.acknowledge(1, b"x")
    assert h.found == "two records of orders-0 were acknowledged at offset 1"


async def test_a_leader_that_lost_a_record_is_seen(h: History) -> None:
    h.safety.disks[2].logs[TP].records.pop()
    h.bump(leader=2)
    assert h.found == "broker 2 leads orders-0 without the acknowledged record at offset 2"


async def test_a_replica_that_joins_the_isr_too_early_is_seen(h: History) -> None:
    h.write(assignment=MOVING)
    h.append((4,), b"a", b"b")
    h.grow(1, 2, 3, 4)
    assert h.found == "broker 4 is in the ISR of orders-0 without the acknowledged record at offset 2"


async def test_a_replica_joins_the_isr_with_all_records(h: History) -> None:
    h.write(assignment=MOVING)
    h.append((4,), b"a", b"b", b"c")
    h.grow(1, 2, 3, 4)
    assert h.found is None


async def test_a_member_of_the_isr_that_cuts_off_a_record_is_seen(h: History) -> None:
    h.truncate(3, 2)
    text = "truncated its log to 2, where records up to 2 were acknowledged"
    assert h.found == f"broker 3 in the ISR of orders-0 {text}"


async def test_who_is_not_in_the_isr_may_cut_off_what_it_likes(h: History) -> None:
    h.bump(isr=(1, 2))
    h.truncate(3, 0)
    h.append((3,), b"x")
    assert h.found is None


async def test_a_member_that_writes_another_record_is_seen(h: History) -> None:
    del h.safety.disks[3].logs[TP].records[2:]
    h.append((3,), b"x")
    assert h.found == "broker 3 in the ISR of orders-0 has another record than the acknowledged one at 2"


@pytest.mark.parametrize("known", [True, False])
async def test_who_lost_its_disk_does_not_lead_once_that_is_known(h: History, *, known: bool) -> None:
    h.expire(2)
    h.wipe(2)
    h.register(2)
    if known:
        await trio.sleep(STALE_SECONDS)
    h.bump(leader=2)
    assert ("broker 2 leads orders-0 without" in (h.found or "")) == known


async def test_a_broker_that_lost_its_disk_may_be_in_the_isr_until_that_is_known(h: History) -> None:
    h.wipe(3)
    h.append((2,), b"d")
    h.acknowledge(3, b"d")
    h.bump(isr=(1, 2))
    assert h.found is None
    assert h.safety.lost() == []


@pytest.mark.parametrize("is_readable", [True, False])
async def test_who_lost_its_disk_is_trusted_while_its_last_storage_cannot_be_read(
    h: History, *, is_readable: bool
) -> None:
    exempt = h.safety.exempt
    (exempt.close if is_readable else exempt.add)(paths.storage_id(1))
    h.bump(isr=(1,))
    h.wipe(1)
    h.expire(1)
    h.register(1)
    await trio.sleep(STALE_SECONDS)
    h.bump(leader=-1, isr=(1,))
    h.bump(leader=1)
    h.append((1,), b"x")
    h.acknowledge(0, b"x")
    assert (h.found is None) != is_readable
    assert (h.safety.lost() == []) != is_readable


async def test_who_kept_its_disk_is_judged_even_if_its_last_storage_cannot_be_read(h: History) -> None:
    h.safety.exempt.add(paths.storage_id(2))
    h.safety.disks[2].logs[TP].records.pop()
    h.bump(leader=2)
    assert h.found == "broker 2 leads orders-0 without the acknowledged record at offset 2"


async def test_records_lost_with_the_disks_of_all_members_are_no_violation_while_nobody_leads(h: History) -> None:
    h.bump(isr=(1,))
    h.wipe(1)
    h.bump(isr=(), leader=-1)
    assert h.found is None
    assert h.safety.lost() == []


async def test_an_unclean_election_may_lose_records_if_it_is_reported(h: History) -> None:
    h.bump(isr=(1,))
    h.truncate(2, 1)
    h.bump(leader=-1)
    h.elect_uncleanly(2)
    h.acknowledge(2, b"c")  # a late acknowledgement
    assert h.found is None
    assert h.safety.lost() == []


async def test_a_late_acknowledgement_counts_for_nobody_whatever_the_new_leader_lost(h: History) -> None:
    h.bump(isr=(1,))
    h.bump(leader=-1)
    h.wipe(2)
    h.expire(2)
    h.register(2)
    h.elect_uncleanly(2)
    h.acknowledge(2, b"c")
    await trio.sleep(STALE_SECONDS)
    h.bump(leader=2)
    assert h.found is None
    assert h.safety.lost() == []


async def test_what_is_lost_in_the_end_is_seen(h: History) -> None:
    h.safety.disks[1].logs[TP].records[1] = Record(0, b"x")
    assert h.safety.lost() == [
        "broker 1 in the ISR of orders-0 lacks the acknowledged record at offset 1",
        "the log of broker 2 in the ISR of orders-0 differs from that of leader 1",
        "the log of broker 3 in the ISR of orders-0 differs from that of leader 1",
    ]


async def test_an_isr_that_becomes_empty_while_its_last_member_has_the_data_is_seen(h: History) -> None:
    h.bump(isr=(1,))
    h.expire(1)
    h.bump(isr=(), leader=-1)
    assert h.found == "orders-0: the ISR (1,) became empty, although (1,) have their data"


def alone_in_the_isr() -> History:
    """Return a history in which broker 1 is the last member of the ISR, and its partition has no leader."""
    h = produced()
    h.bump(isr=(1,))
    h.expire(1)
    h.bump(leader=-1)
    return h


@pytest.mark.parametrize("seconds", [1.0, 6.0])
async def test_an_unclean_election_that_passes_over_a_live_member_is_seen(seconds: float) -> None:
    h = alone_in_the_isr()
    h.register(1)
    await trio.sleep(seconds)
    h.elect_uncleanly(2)
    expected = "orders-0: broker 2 leads, although (1,) of the ISR (1,) could"
    assert h.found == (expected if seconds > 5.0 else None)  # a controller learns of it until then


async def test_an_unclean_election_that_passes_over_a_live_member_with_a_damaged_registration_is_seen() -> None:
    h = alone_in_the_isr()
    h.register(1)
    h.damage_registration(1)
    await trio.sleep(6.0)
    h.elect_uncleanly(2)
    assert h.found == "orders-0: broker 2 leads, although (1,) of the ISR (1,) could"


TROUBLES = ("dead", "empty", "shutting down", "failed", "mended", "restarted", "disowned")


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_an_unclean_election_passes_over_a_member_that_cannot_lead(trouble: str) -> None:
    h = alone_in_the_isr()
    if trouble != "dead":
        h.register(1)
    if trouble == "empty":
        h.wipe(1)
    if trouble == "shutting down":
        h.safety.asked(ControlledShutdownRequest(1, 0))
    if trouble in ("failed", "mended", "restarted"):
        h.safety.disks[1].fail(0)
    if trouble in ("mended", "restarted"):
        h.safety.disks[1].mend()
    if trouble == "disowned":
        h.safety.disks[1].disown(TP)
    if trouble == "restarted":  # before its session ended
        h.safety.disks[1].cut()
    await trio.sleep(6.0)
    h.elect_uncleanly(2)
    assert h.found is None
