"""Leadership writes: first leaders, elections, ISR shrinks.

Every change of an existing partition state goes through `write_choices`. A write expects the version that the
context holds, so a partition whose znode was changed concurrently is rejected, read and decided again, while all other
partitions of the round are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress

from msgspec.structs import replace

from controller.handlers import configs
from controller.model import choosing, elections, registrations
from controller.model.batches import LeadershipSteps
from controller.model.choosing import decide_all
from controller.model.context import ControllerContext
from controller.model.facts import LeadershipsWritten, PartitionsMoved
from controller.model.rounds import (
    Rounds,
    Step,
    TellLeaderAndIsr,
    TellMetadata,
    apply,
    commit,
    commit_each,
    existing,
    logged,
    read,
    until_none_is_left,
)
from controller.model.state_machines import PartitionPhase
from transport.log import get_logger
from transport.metadata import (
    INITIAL_LEADER_EPOCH,
    NEVER_LED,
    NO_LEADER,
    LeaderAndIsr,
    TopicPartition,
)
from transport.store import formats, paths, plain_formats
from transport.store.chunks import Group
from transport.store.protocol import FORBIDDEN, Create, Znode

log = get_logger(__name__)


class ControllerMoved(Exception):
    """Another controller has been elected, so this one must stop acting."""


def read_again(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[list[TopicPartition]]:
    """Return those of the partitions that have leadership; where leaders write ISRs themselves, load it before.

    The notifications of such leaders come seconds later, and a decision on an old ISR might find no leader. A partition
    whose state is gone or cannot be decoded is left out.
    """
    led = [tp for tp in tps if tp in context.leadership]
    if context.config.kafka and context.kafka.write_isrs(registrations.alive(context), context.config.protocol):
        return (yield from refresh(context, led))
    return led


def refresh(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[list[TopicPartition]]:
    """Load the stored state of partitions that had leadership; return those that still have a decodable state."""
    znodes = yield from read(paths.partition_state(tp) for tp in tps)
    states = yield from decode_states(context, tps, znodes)
    found = [(tp, state) for tp, state in zip(tps, states, strict=True) if state is not None]
    new = {tp: state for tp, state in found if state != context.leadership.get(tp)}
    yield from apply("observed", [Step(facts=(LeadershipsWritten(list(new), list(new.values())),))] if new else [])
    for tp, znode in zip(tps, znodes, strict=True):
        if znode is None:
            log.error("partition set aside: its state is gone", partition=str(tp))
    return [tp for tp, _ in found]


def decode_states(
    context: ControllerContext, tps: Sequence[TopicPartition], znodes: Sequence[Znode | None]
) -> Rounds[list[LeaderAndIsr | None]]:
    """Return the state of each partition, None for one that has no decodable one.

    Raises ControllerMoved if a later controller wrote one of them. A controller epoch that no controller ever had is
    damage: the state is treated as written at our epoch, so that it neither ends this controllership nor outranks
    later states.
    """
    states: list[LeaderAndIsr | None] = []
    for tp, znode in zip(tps, znodes, strict=True):
        plain = None if znode is None else plain_formats.partition_state(znode.data, znode.stat.version)
        state = plain or _decode(tp, znode)
        if state is not None and state.controller_epoch > context.epoch:
            # A later controller wrote this state, unless `/controller_epoch` is still ours: then the epoch is damage.
            yield from _confirm_office(context, tp, state.controller_epoch)
            state = replace(state, controller_epoch=context.epoch)
        states.append(state)
    return states


def _decode(tp: TopicPartition, znode: Znode | None) -> LeaderAndIsr | None:
    try:
        return None if znode is None else formats.decode_partition_state(tp, znode.data, znode.stat.version)
    except formats.UndecodableZnode as fault:
        log.error("partition set aside: its state cannot be decoded", partition=str(tp), fault=str(fault))
        return None


def _confirm_office(context: ControllerContext, tp: TopicPartition, epoch: int) -> Rounds[None]:
    [znode] = yield from read([paths.CONTROLLER_EPOCH])
    if znode is None or znode.stat.version != context.epoch_version:
        raise ControllerMoved(f"{tp} was written at controller epoch {epoch}")
    log.error("a state has a controller epoch that no controller had", partition=str(tp), controller_epoch=epoch)


# --- first leaders ----------------------------------------------------------------------------------------------


def bring_online(context: ControllerContext, *, only_cleanly: bool = False) -> Rounds[None]:
    """Elect a leader for every New and Offline partition that can have one; see `elect_leaders`."""
    yield from initialise(context, context.in_phase(PartitionPhase.NEW))
    yield from elect_leaders(context, context.in_phase(PartitionPhase.OFFLINE), only_cleanly=only_cleanly)


def initialise(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Create the state of New partitions: the first online replica leads, all online ones form the ISR.

    A state that exists already is adopted: the answer to an earlier creation was lost, or another controller created
    it. A partition without an online replica stays New.
    """

    def create(pending: list[TopicPartition]) -> Rounds[list[TopicPartition]]:
        # A parent that this round has just created has no partitions below it, so reading them is skipped.
        empty, closed = yield from _create_parents(list(dict.fromkeys(tp.topic for tp in pending)))
        pending = [tp for tp in pending if tp.topic not in closed]
        others = [tp for tp in pending if tp.topic not in empty]
        parents = yield from read(paths.partition(tp) for tp in others)
        states = yield from read(paths.partition_state(tp) for tp in others)
        yield from _adopt(context, others, states)
        missing = {tp: parent is None for tp, parent, state in zip(others, parents, states, strict=True) if not state}
        created = [tp for tp in pending if tp in missing or tp.topic in empty]
        steps = _creations(context, created, missing)
        wait = logged("partitions stay without a leader: they get one when a broker comes, or the next controller")
        refused = yield from commit("create", steps, on_rejected=wait)
        left = [tp for step in refused for tp in step.subjects]
        # The watch on the list of topics reports those that are gone.
        there = yield from existing(paths.topic, [tp.topic for tp in left])
        return [tp for tp in left if tp.topic in there]

    tps = list(tps)
    online = decide_all(context, tps, lambda tp: context.online(tp, context.assignment(tp).replicas))
    yield from until_none_is_left("create", compress(tps, online), create)


def _creations(
    context: ControllerContext, tps: Sequence[TopicPartition], has_no_parent: Mapping[TopicPartition, bool]
) -> LeadershipSteps:
    """Return the steps that create states, with parents unless `has_no_parent` says that they exist."""
    firsts = decide_all(context, tps, partial(choosing.first, context))
    groups: list[Group] = []
    for tp, path, (_, _, data) in zip(tps, paths.partition_states(tps), firsts, strict=True):
        parent = (Create(paths.partition(tp)),) if has_no_parent.get(tp, True) else ()
        groups.append((*parent, Create(path, data)))
    choices, leaderships = [choice for choice, _, _ in firsts], [leadership for _, leadership, _ in firsts]
    return LeadershipSteps(context, tps, leaderships, choices, groups)


def _create_parents(topics: Sequence[str]) -> Rounds[tuple[frozenset[str], frozenset[str]]]:
    """Create missing parents of partitions; return the topics that got one, and those whose creation is rejected."""
    found = yield from existing(paths.topic_partitions, topics)
    steps = {name: Step(writes=(Create(paths.topic_partitions(name)),)) for name in topics if name not in found}
    closed = list[str]()
    stale = yield from commit_each("parents", steps, on_rejected=closed.extend)
    return frozenset(steps).difference(stale, closed), frozenset(closed)


def adopt(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Take the states over that New partitions have by now, even where no replica is online: an ACL hid them."""
    found = yield from read(map(paths.partition_state, tps))
    yield from _adopt(context, tps, [None if znode == FORBIDDEN else znode for znode in found])


def _adopt(context: ControllerContext, tps: Sequence[TopicPartition], znodes: Sequence[Znode | None]) -> Rounds[None]:
    steps = []
    states = yield from decode_states(context, tps, znodes)
    for tp, state in zip(tps, states, strict=True):
        if state is None:
            continue
        phase = PartitionPhase.ONLINE if registrations.may_go_on(context, tp, state.leader) else PartitionPhase.OFFLINE
        facts = (LeadershipsWritten([tp], [state]), PartitionsMoved([tp], phase))
        # The controller that wrote the first state may have lost office before it notified any broker. After a later
        # one, which an ACL or damage hid from us, the replicas have data that a new replica would not be expected to.
        online = context.online(tp, context.assignment(tp).replicas)
        known = context.describe(tp, leadership=state)
        order = TellLeaderAndIsr([online], [known], is_new=state.leader_epoch == INITIAL_LEADER_EPOCH)
        steps.append(Step((tp,), facts=facts, publications=(order, TellMetadata(None, (known,)))))
    yield from apply("adopt", steps)


# --- elections and ISRs -----------------------------------------------------------------------------------------


def elect_leaders(
    context: ControllerContext, tps: Iterable[TopicPartition], *, only_cleanly: bool = False
) -> Rounds[None]:
    """Elect leaders for Offline partitions from the online members of their ISRs; the rest stay Offline.

    If no member is online, the topic's settings decide whether another replica may lead; with `only_cleanly`, none may.
    """
    led = yield from read_again(context, tps)
    unclean = () if only_cleanly else (yield from _unclean_allowed(context, led))
    yield from elect(context, led, elections.offline, unclean=unclean)


def _unclean_allowed(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[Collection[str]]:
    """Return the topics of Offline partitions in which a replica outside the ISR may lead, if no member of it can.

    Only the settings of topics with such a partition are read.
    """
    are_hopeless = decide_all(context, tps, partial(choosing.is_hopeless, context))
    hopeless = [tp.topic for tp in compress(tps, are_hopeless)]
    return (yield from configs.unclean_allowed(context, hopeless)) if hopeless else ()


def elect(
    context: ControllerContext,
    tps: Iterable[TopicPartition],
    strategy: elections.Strategy,
    *,
    unclean: Collection[str] = (),
) -> Rounds[None]:
    """Elect leaders; partitions without an eligible replica are left unchanged.

    In the topics in `unclean`, a replica outside the ISR may lead if no member of it can.
    """

    def choose(tp: TopicPartition) -> elections.Choice | None:
        return strategy(choosing.candidate(context, tp, unclean=unclean))

    yield from write_choices(context, "elect", tps, choose, lambda pending: [tp.topic in unclean for tp in pending])


def write_choices(
    context: ControllerContext,
    name: str,
    tps: Iterable[TopicPartition],
    choose: Callable[[TopicPartition], elections.Choice | None],
    kinds: Callable[[Sequence[TopicPartition]], Sequence[Hashable]] | None = None,
) -> Rounds[list[TopicPartition]]:
    """Put what `choose` returns for each partition into effect; one without a choice is left unchanged.

    It is called once for all partitions that are alike and of one kind (see `decide_all`), and again for those whose
    state had changed. Return the partitions that were handled: one whose state is missing, or cannot be decoded or
    written, is left unchanged. Raises ControllerMoved if a later controller wrote one of them.
    """
    tps = list(tps)
    there = yield from read_again(context, tps)
    set_aside = set(tps).difference(there) if len(there) < len(tps) else set()
    taken: dict[Hashable, elections.Choice | None] = {}

    def decide(pending: Sequence[TopicPartition]) -> LeadershipSteps:
        choices = decide_all(context, pending, choose, kinds and kinds(pending), taken)
        for tp, choice in zip(pending, choices, strict=True):
            if choice is None or choice.is_unclean or choice.leader == NO_LEADER:
                _log_election(context, tp, choice)
        return _steps_of(context, pending, choices)

    def leave(rejected: Sequence[Step]) -> None:
        set_aside.update(tp for step in rejected for tp in step.subjects)

    def write(pending: list[TopicPartition]) -> Rounds[list[TopicPartition]]:
        size = context.config.request_limits.operations
        later = [partial(decide, pending[start : start + size]) for start in range(size, len(pending), size)]
        refused = yield from commit(name, decide(pending[:size]), on_rejected=leave, later=later)
        stale = [tp for step in refused for tp in step.subjects]
        left = yield from refresh(context, stale)
        set_aside.update(set(stale) - set(left))
        return left

    yield from until_none_is_left(name, there, write)
    return [tp for tp in tps if tp not in set_aside]


def _log_election(context: ControllerContext, tp: TopicPartition, choice: elections.Choice | None) -> None:
    isr = context.leadership[tp].isr
    if choice is not None and choice.is_unclean:
        text = "unclean election: records that only the ISR had are lost, check the brokers that held them"
        log.error(text, partition=str(tp), leader=choice.leader, isr=isr)
    else:
        replicas = context.assignment(tp).replicas
        online = context.online(tp, replicas)
        log.warning("no leader elected", partition=str(tp), replicas=replicas, online=online, isr=isr)


def _steps_of(
    context: ControllerContext, tps: Sequence[TopicPartition], choices: Sequence[elections.Choice | None]
) -> LeadershipSteps:
    """Return the steps that put choices into effect; a partition without one is left unchanged."""
    chosen = [choice for choice in choices if choice is not None]
    led = [tp for tp, choice in zip(tps, choices, strict=True) if choice is not None]
    before = map(context.leadership.__getitem__, led)
    after = [
        elections.led_by(choice, state, context.epoch) if choice.is_change else state
        for choice, state in zip(chosen, before, strict=True)
    ]
    return LeadershipSteps(context, led, after, chosen)


def replace_offline(
    context: ControllerContext, tps: Sequence[TopicPartition], gone: Sequence[int], *, only_cleanly: bool = False
) -> Rounds[None]:
    """Bring partitions online that can be, and take the replicas of `tps` on `gone` offline and out of the ISRs.

    The context must already know that these replicas are not online. A partition that they led gets a new leader in the
    same write; without one, it has none. (Kafka's onReplicasBecomeOffline.) With `only_cleanly`, none is elected from
    outside the ISR, whatever the settings.
    """
    leaderless = [tp for tp in tps if context.leadership.get(tp, NEVER_LED).leader in gone]
    offline = Step(tuple(leaderless), facts=(PartitionsMoved(leaderless, PartitionPhase.OFFLINE),))
    yield from apply("offline", [offline] if leaderless else [])
    yield from initialise(context, context.in_phase(PartitionPhase.NEW))
    waiting = yield from read_again(context, context.in_phase(PartitionPhase.OFFLINE))
    unclean = () if only_cleanly else (yield from _unclean_allowed(context, waiting))
    phases, affected = context.partition_phases, frozenset(tps)

    def choose(tp: TopicPartition) -> elections.Choice | None:
        is_offline = phases[tp] is PartitionPhase.OFFLINE
        elected = elections.offline(choosing.candidate(context, tp, unclean=unclean)) if is_offline else None
        return choosing.without(context, tp, gone, elected) if tp in affected else elected

    def kinds(pending: Sequence[TopicPartition]) -> list[Hashable]:
        known = zip(pending, phases.of_all(pending), strict=True)
        return [(phase, tp in affected, tp.topic in unclean) for tp, phase in known]

    # Partitions without a leader come first.
    yield from write_choices(context, "leave", dict.fromkeys((*waiting, *tps)), choose, kinds)
