"""Elections from outside the ISR, if the settings allow them."""

from __future__ import annotations

import pytest
import structlog
from attrs import evolve

from controller.config import ControllerConfig
from controller.events import BrokerChange, ConfigChange
from controller.handlers.controlled_shutdown import controlled_shutdown
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import TP, Bench
from transport.metadata import NO_LEADER, LeaderRecoveryState, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create

ALLOWED = formats.encode_config({"unclean.leader.election.enable": "true"})


async def allow(bench: Bench, path: str) -> None:
    await bench.store.multi([Create(path, ALLOWED)])


async def until_the_isr_is_dead(bench: Bench) -> None:
    """Let 1 be the only member of the ISR, and die."""
    await bench.alter_isr(TP, 1)
    bench.seen.clear()
    await bench.kill(1)


@pytest.mark.requirement("C4", "D4")
@pytest.mark.parametrize("path", [paths.topic_config("orders"), paths.broker_config(None)])
async def test_a_setting_lets_another_replica_lead_as_soon_as_the_isr_is_dead(bench: Bench, path: str) -> None:
    await bench.start((1, 2, 3))
    await allow(bench, path)
    before = await bench.read_state(TP)
    with structlog.testing.capture_logs() as logs:
        await until_the_isr_is_dead(bench)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2,), before.leader_epoch + 1)
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING
    [reported] = [entry for entry in logs if entry["event"].startswith("unclean election")]
    assert (reported["log_level"], reported["partition"], reported["leader"]) == ("error", "orders-0", 2)


@pytest.mark.requirement("C4")
async def test_the_controllers_own_setting_counts_as_well(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    bench.context.config = evolve(ControllerConfig(1001), unclean_leader_election_enable=True)
    await until_the_isr_is_dead(bench)
    assert (await bench.read_state(TP)).leader == 2


@pytest.mark.requirement("C4", "D4")
async def test_a_live_member_of_the_isr_is_elected_cleanly_all_the_same(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await allow(bench, paths.topic_config("orders"))
    await bench.alter_isr(TP, 1, 3)
    await bench.kill(1)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (3, (3,))
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERED


@pytest.mark.requirement("C4")
async def test_what_is_allowed_to_one_topic_is_not_allowed_to_another(bench: Bench) -> None:
    other = TopicPartition("other", 0)
    await bench.write_topic("other", (1, 2))
    await bench.start((1, 2, 3))
    await allow(bench, paths.topic_config("other"))
    await bench.alter_isr(other, 1)
    await until_the_isr_is_dead(bench)
    assert (await bench.read_state(other)).leader == 2
    assert (await bench.read_state(TP)).leader == NO_LEADER
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE


@pytest.mark.requirement("C4")
async def test_a_setting_that_comes_later_is_picked_up(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await until_the_isr_is_dead(bench)
    assert (await bench.read_state(TP)).leader == NO_LEADER
    await allow(bench, paths.topic_config("orders"))
    told = formats.encode_config_change("topics/orders")
    await bench.store.multi([Create(f"{paths.CONFIG_CHANGES}/config_change_", told, sequence=True)])
    await bench.handle(ConfigChange())
    assert (await bench.read_state(TP)).leader == 2


@pytest.mark.requirement("C4", "D7")
async def test_the_next_controller_elects_where_the_settings_allow_it(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await until_the_isr_is_dead(bench)
    await allow(bench, paths.topic_config("orders"))
    await bench.fail_over()
    assert (await bench.read_state(TP)).leader == 2


@pytest.mark.requirement("C4")
async def test_where_all_members_lost_their_disks_a_setting_lets_one_lead(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2), storage_id="first")
    await allow(bench, paths.topic_config("orders"))
    await bench.kill(1, 2)
    await bench.revive(1, 2, storage_id="second")
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (1, (1,))
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING


@pytest.mark.requirement("C4", "D5")
@pytest.mark.parametrize("others", [(2, 3), ()], ids=["others live", "others start with it"])
async def test_a_bounced_broker_that_is_the_whole_isr_is_not_passed_over(bench: Bench, others: tuple[int, ...]) -> None:
    await bench.start((1, 2, 3))
    await allow(bench, paths.topic_config("orders"))
    await bench.alter_isr(TP, 1)
    await bench.kill(*(id_ for id_ in (2, 3) if id_ not in others))
    await bench.unregister(1)
    for id_ in (1, 2, 3):
        if id_ not in others:
            await bench.register(id_)
    await bench.handle(BrokerChange())
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (1, (1,))
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERED


@pytest.mark.requirement("C4", "D5")
async def test_where_a_bounced_broker_lost_its_disk_another_replica_may_lead(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2), storage_id="first")
    await allow(bench, paths.topic_config("orders"))
    await bench.alter_isr(TP, 1)
    await bench.unregister(1)
    await bench.register(1, storage_id="second")
    await bench.handle(BrokerChange())
    state = await bench.read_state(TP)
    assert (state.isr, state.leader_recovery_state) == ((state.leader,), LeaderRecoveryState.RECOVERING)


@pytest.mark.requirement("C4")
async def test_who_shuts_down_is_not_elected_uncleanly(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await allow(bench, paths.topic_config("orders"))
    await bench.run(controlled_shutdown(bench.context, 2, bench.context.brokers[2].epoch))
    await until_the_isr_is_dead(bench)
    assert (await bench.read_state(TP)).leader == 3


@pytest.mark.requirement("A9", "C4")
async def test_a_move_that_waited_for_a_leader_goes_on(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await bench.move(TP, (2,))
    await allow(bench, paths.topic_config("orders"))
    await bench.kill(1)
    assert (await bench.read_assignment(TP)).replicas == (2,)
    assert (await bench.read_state(TP)).leader == 2
