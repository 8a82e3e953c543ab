"""What a test sees of a simulated cluster: records, the durable state, metadata of brokers, proposals of leaders."""

from __future__ import annotations

import asyncio

import pytest
import trio

from klamm.testing import GaveUp, IsrProposal, SteppedCluster, open_asyncio_cluster, open_cluster
from klamm.testing.actions import Crash, KeepOutOfIsr, LoseQuorum, Pause


@pytest.mark.usefixtures("autojump_clock")
async def test_committed_records_are_read_back() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await c.produce("orders-0", [b"paid", b"sent"])
        Crash("leader of orders-0", noticed=True).on(c)
        assert await c.consume("orders-0", up_to=2) == [b"paid", b"sent"]
        assert await c.consume("orders-0", 1, up_to=2) == [b"sent"]
        with pytest.raises(GaveUp, match="only 2 of 3 records were committed"):
            await c.consume("orders-0", up_to=3, within=5)


@pytest.mark.usefixtures("autojump_clock")
async def test_the_state_is_dumped_whatever_the_store_does() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2]])
        await c.until(lambda: c.partition("orders-0") is not None)
        LoseQuorum().on(c)
        dumped = await c.dump_state()
        assert dumped["controller"] == {"id": c.active_controller, "epoch": 1}
        assert [broker["id"] for broker in dumped["brokers"]] == [1, 2, 3]
        [partition] = dumped["partitions"]
        assert (partition["topic"], partition["replicas"], partition["isr"]) == ("orders", (1, 2), (1, 2))
        assert dumped["undecodable"] == []


@pytest.mark.usefixtures("autojump_clock")
async def test_what_a_broker_knows_may_be_old() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        Pause(3, keeps_session=True).on(c)
        Crash(1, noticed=True).on(c)
        await c.until(lambda: (state := c.partition("orders-0")) is not None and state.leader == 2)
        await trio.sleep(1)
        leaders = {id_: [state.leader for state in held.partitions] for id_ in (2, 3) if (held := c.metadata(id_))}
        assert leaders == {2: [2], 3: [1]}
        assert c.metadata(1) is None
        with pytest.raises(KeyError):
            c.metadata(101)


@pytest.mark.usefixtures("autojump_clock")
async def test_the_proposals_of_leaders_are_listed() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2]])
        await c.until(lambda: c.partition("orders-0") is not None)
        assert c.proposed_isrs("orders-0") == ()
        KeepOutOfIsr({"orders-0": [2]}).on(c)
        await c.until(lambda: (state := c.partition("orders-0")) is not None and state.isr == (1,))
        KeepOutOfIsr({"orders-0": []}).on(c)
        await c.until(lambda: (state := c.partition("orders-0")) is not None and state.isr == (1, 2))
        assert c.proposed_isrs("orders-0") == (IsrProposal(1, 0, 0, (1,)), IsrProposal(1, 0, 1, (1, 2)))


def test_asyncio_programs_see_the_same() -> None:
    async def main() -> None:
        async with open_asyncio_cluster(first_controller=102) as c:
            await c.create_topic("orders", [(1, 2)])
            await c.produce("orders-0", [b"paid"])
            c.crash(2)
            await c.until(lambda: (state := c.partition("orders-0")) is not None and state.isr == (1,))
            assert c.active_controller == 102
            assert await c.consume("orders-0", up_to=1) == [b"paid"]
            assert [row["isr"] for row in (await c.dump_state())["partitions"]] == [(1,)]
            assert c.metadata(2) is None
            held = c.metadata(1)
            assert held is not None
            assert held.controller is not None
            assert held.controller.id == 102
            assert c.proposed_isrs("orders-0") == ()

    asyncio.run(main())


def test_code_without_async_sees_the_same() -> None:
    with SteppedCluster.open(first_controller=102) as stepped:
        c = stepped.cluster
        stepped.call(c.create_topic, "orders", [(1, 2)])
        stepped.call(c.produce, "orders-0", [b"paid"])
        assert c.active_controller == 102
        assert stepped.call(c.consume, "orders-0", up_to=1) == [b"paid"]
        assert [row["isr"] for row in stepped.call(c.dump_state)["partitions"]] == [(1, 2)]
        held = c.metadata(1)
        assert held is not None
        assert [broker.id for broker in held.brokers] == [1, 2, 3]
        assert c.proposed_isrs("orders-0") == ()
