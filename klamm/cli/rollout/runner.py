"""A rollout from outside the cluster: it begins moves as others end, and keeps all that it has to know in its journal.

Each step looks at the cluster, notes which moves have ended, and begins others. A process that dies between two lines
of a step leaves nothing that the next one does not find out: what was to begin is in the journal before it is asked
for, and whether it has begun, the cluster shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import trio
from attrs import define, evolve, field

from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import CANNOT_SEE
from controller.admin.znode_moves import ZnodeMoves
from controller.rollout.adapting import FIRST
from controller.rollout.choosing import Hold
from controller.rollout.forecast import TimeLeft
from controller.rollout.judging import Course, judge, stays_for
from controller.rollout.moves import Move
from controller.rollout.room import Places
from controller.rollout.states import BACK, FORTH, Happening, HeldBy, MoveState, Phase
from klamm.cli.rollout.adapting import Adapting
from klamm.cli.rollout.asking import place_logs, request
from klamm.cli.rollout.brakes import Brakes
from klamm.cli.rollout.ending import cancel, elect
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.options import Options
from klamm.cli.rollout.plan_files import Plan
from klamm.cli.rollout.showing import Display, progress_of
from klamm.cli.rollout.slowing import Slowing
from klamm.cli.rollout.surroundings import Surroundings
from klamm.cli.rollout.work import Work
from transport.errors import ApiError, in_words
from transport.messages import PartitionState, ReassignmentDescription
from transport.metadata import LEADER_DURING_DELETE, TopicPartition

SHORTEST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 2.0
"""The pause is as long as the step before it, so that a cluster is asked half of the time at most."""

CANCELLED_SECONDS: Final = 10.0
"""The longest time that the other moves of an undo wait until those that cannot end are cancelled."""

MOST_REFUSALS: Final = 3
MOST_TROUBLE: Final = 10
"""The errors in a row after which a rollout gives up; it can be started again."""


@define
class Runner:
    """Carries out the moves of a plan, forth or back."""

    admin: MoveAdmin
    plan: Plan
    moves: Sequence[Move]
    options: Options
    journal: Journal
    history: History
    slowing: Slowing
    display: Display = field(factory=Display)
    _work: Work = field(init=False)
    _around: Surroundings = field(init=False)
    _time_left: TimeLeft = field(factory=TimeLeft)
    _adapting: Adapting = field(factory=Adapting)
    _running_seconds: float = 0.0
    _last_step: float | None = None
    _refusals: defaultdict[TopicPartition, int] = field(factory=lambda: defaultdict(int))
    _trouble: int = 0
    _told: str = ""

    def __attrs_post_init__(self) -> None:
        """Take up the work where the journal left it."""
        self._work = self._work_of_phase()
        options = self.options
        brakes = Brakes(self.admin, self.history.brokers, options.pause_file, options.go_url, options.ignore_min_isr)
        checks_room = not (options.ignore_room or isinstance(self.admin, ZnodeMoves))
        self._around = Surroundings(self.admin, self.moves, brakes, checks_room)

    # --- the course -----------------------------------------------------------------------------------------------

    async def carry_out(self) -> None:
        """Carry the rollout on until it is over, whatever it takes."""
        with self.display.running():
            await self._pick_up()
            while not self.history.state.is_over:
                began = trio.current_time()
                try:
                    await self._step()
                    self._trouble = 0
                except (*CANNOT_SEE, ApiError) as error:
                    self._bear(error)
                took = trio.current_time() - began
                await trio.sleep(min(max(SHORTEST_PAUSE, took), LONGEST_PAUSE))

    def _bear(self, error: Exception) -> None:
        """Continue after an error, but not for ever."""
        self._trouble += 1
        if self._trouble >= MOST_TROUBLE:
            raise error
        self.display.say(f"trying again: {in_words(error)}")

    async def _pick_up(self) -> None:
        """Find what an earlier process has left: moves in flight keep their throttle, and get the rate of this one."""
        begun = self.history.having(self._work.direction.in_flight)
        self._work.begin([self._work.move(tp) for tp in begun], trio.current_time())
        if begun:
            self.display.say(f"picked up {len(begun):,} moves that had begun")
            states = await self._states_of(begun)
            await self.slowing.renew(states.values(), {tp: self._work.move(tp).after for tp in begun})

    async def _step(self) -> None:
        await self._take_wishes()
        moving = {move.tp: move for move in (await self.admin.describe_reassignments()).values()}
        self._work.see(moving.values(), trio.current_time())
        await self._settle(moving)
        phase = self.history.state.phase
        if phase in {Phase.ABORTING, Phase.ABORTING_TO_UNDO}:
            await self._abort()
            return
        await self._look_around(moving)
        if self._work.is_over:
            await self._end()
            self._happen(Happening.FINISHED)
        else:
            await self._begin_next(moving)
        self._show()

    async def _take_wishes(self) -> None:
        """Read what operators have put into the journal; a new throttle is for moves in flight as well.

        So is the throttle for a broker that is back.
        """
        self._take_entries()
        if self.slowing.rate != self.options.throttle or await self.slowing.is_anyone_back():
            self.slowing.rate = self.options.throttle
            flying = {move.tp: move.after for move in self._work.in_flight}
            await self.slowing.renew((await self._states_of(flying)).values(), flying)

    def _take_entries(self) -> None:
        entries = self.journal.read()
        self.history.take(entries)
        for entry in entries:
            if entry["is"] == "set":
                self.options = self.options.changed(entry)
                self._adapting.rate = self.options.throttle or FIRST
                self.display.say("limits and throttle were changed")

    def _happen(self, happening: Happening, **more: object) -> None:
        self.journal.add("happened", what=happening.value, **more)
        self._take_entries()
        self.display.say(f"rollout: {self.history.state}")

    # --- what has ended -------------------------------------------------------------------------------------------

    async def _settle(self, moving: Mapping[TopicPartition, ReassignmentDescription]) -> None:
        """Note the moves in flight that are over, and lift their throttles."""
        flying = [move.tp for move in self._work.in_flight]
        astray = [tp for tp in flying if tp in moving and moving[tp].new_replicas != self._work.move(tp).after]
        over = [tp for tp in flying if tp not in moving]
        if not over and not astray:
            return
        ended = self._judge(await self._states_of([*over, *astray]), [*over, *astray])
        if ended:
            await self.slowing.end(ended)

    def _judge(
        self, states: Mapping[TopicPartition, PartitionState], partitions: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        """Note what became of moves; return those that are over."""
        found: defaultdict[tuple[MoveState, str], list[TopicPartition]] = defaultdict(list)
        topics = {state.topic for state in states.values()}
        for tp in partitions:
            state = states.get(tp)
            is_other = state is not None and self._is_other_topic(state)
            is_gone = tp.topic not in topics if state is None else state.leader == LEADER_DURING_DELETE
            seen = self._work.was_seen(tp)
            said = judge(self._work.move(tp), state, was_seen=seen, is_other_topic=is_other, is_deleted=is_gone)
            match said.course:
                case Course.ENDED:
                    found[self._work.direction.ended, ""].append(tp)
                case Course.OVERRIDDEN:
                    found[MoveState.OVERRIDDEN, said.why].append(tp)
                case Course.FAILED:
                    found[MoveState.FAILED, said.why].append(tp)
                case Course.DELETED:
                    found[MoveState.DELETED, said.why].append(tp)
                case Course.WAITING:
                    self._work.put_back(tp)
                case Course.IN_FLIGHT:
                    pass
        for (state_, why), ended in found.items():
            self._note_ended(state_, ended, why)
        return [tp for ended in found.values() for tp in ended]

    def _is_other_topic(self, state: PartitionState) -> bool:
        known = self.history.topics.get(state.topic, "")
        return known != state.topic_id and "" not in (known, state.topic_id)

    def _note_ended(self, state: MoveState, partitions: Collection[TopicPartition], why: str = "") -> None:
        self.journal.add_end(state, list(partitions), why)
        for tp in partitions:
            self._work.end(tp)
            if why:
                self.display.say(f"{tp}: {state.value}: {why}")

    # --- what holds it up -----------------------------------------------------------------------------------------

    async def _look_around(self, moving: Mapping[TopicPartition, ReassignmentDescription]) -> None:
        """Look at the rest of the cluster: what holds the rollout up, and what takes moves out of it."""
        ours = {move.tp for move in self._work.in_flight}
        foreign = [tp for tp in moving if tp not in ours]
        self._around.brakes.ignores_min_isr |= self.history.ignores_min_isr
        if await self._around.look(foreign, self.history.brokers):
            self._work.urge(self._around.urgent)
        if not self.history.brokers:
            # An operator has let those go that are dead by now: it waits for one that dies later.
            self.journal.add("brokers", brokers=sorted(self._around.live))
        waiting = [tp for tp in foreign if self._work.is_waiting(tp)]
        if self._around.gone_topics:
            waiting += [move.tp for move in self._work.waiting if move.topic in self._around.gone_topics]
        if waiting:
            self._judge(await self._states_of(waiting), waiting)
        await self._around.look_at_room(self._work.receivers, self._work.in_flight)
        self._note_hold(self._around.hold)
        if self.options.adapts:
            await self._adapt()

    async def _adapt(self) -> None:
        """Change the throttle by how the brokers do that copy; the next step gives it to them."""
        flying = self._work.in_flight
        copying = {broker for move in flying for broker in (*move.before, *move.after)} & self._around.live
        others = self._around.lagging - {move.tp for move in flying}
        said = await self._adapting.look(self.admin, copying, others, self._time_left.rate)
        if said is not None:
            self.display.say(said)
        self.options = evolve(self.options, throttle=self._adapting.rate)

    def _note_hold(self, hold: Hold | None) -> None:
        """Put a brake that acts, or lets go, into the journal."""
        is_held = HeldBy.BRAKE in self.history.state.holds
        if hold is not None and not is_held:
            self._happen(Happening.BRAKE, why=hold.text)
        elif hold is None and is_held:
            self._happen(Happening.RELEASE)
        self._say_once("" if hold is None else f"begins nothing for now: {hold.text}")

    def _say_once(self, text: str) -> None:
        """Say something unless it was the last thing that was said so."""
        if text and text != self._told:
            self.display.say(text)
        self._told = text

    # --- what begins ----------------------------------------------------------------------------------------------

    async def _begin_next(self, moving: Mapping[TopicPartition, ReassignmentDescription]) -> None:
        if isinstance(self.admin, ZnodeMoves) and (moving or self._work.in_flight):
            return  # Kafka's controller takes one request at a time
        paused_by = [hold.value for hold in self.history.state.holds if hold is not HeldBy.BRAKE]
        if self._work.direction is BACK and not paused_by:
            await self._cancel_dead()
            self._leave_out_dead()
        standing = self._around.standing(paused_by, self._log_dirs)
        choice = self._work.choose(self.options.limits, standing, trio.current_time())
        if choice.begin:
            await self._begin(choice.begin)

    async def _cancel_dead(self) -> None:
        """Cancel moves back to brokers that are not alive, which they would wait for."""
        stuck = [move for move in self._work.in_flight if stays_for(move, self._around.live)]
        if not stuck:
            return
        self._work.disown(stuck)
        await cancel(self.admin, stuck, self.display, seconds=CANCELLED_SECONDS)
        await self._note_cancelled(stuck)
        await self.slowing.end([move.tp for move in stuck if self._work.is_waiting(move.tp)])

    def _leave_out_dead(self) -> None:
        """Leave partitions as they are whose original replicas are not all alive."""
        stay: defaultdict[str, list[TopicPartition]] = defaultdict(list)
        for move in self._work.waiting:
            why = stays_for(move, self._around.live)
            if why:
                stay[why].append(move.tp)
                self.display.say(f"{move.tp} stays on {list(move.before)}: {why}")
        for why, partitions in stay.items():
            self.journal.add("ended", state=self._work.direction.pending.value, moves=partitions, why=why)
            for tp in partitions:
                self._work.end(tp)

    async def _begin(self, chosen: Sequence[Move]) -> None:
        """Begin moves, each if its partition is still as the plan found it."""
        states = await self._states_of([move.tp for move in chosen])
        self._judge(states, [move.tp for move in chosen])
        ready = [move for move in chosen if self._work.is_waiting(move.tp)]
        if not (ready and (ready := await self._throttled(ready, states))):
            return
        self.journal.add(
            "begun", state=self._work.direction.in_flight.value, moves=[[*move.tp, move.before] for move in ready]
        )
        self._work.begin(ready, trio.current_time())
        self._around.use_room(ready)
        refused = await place_logs(self.admin, ready, self._log_dirs)
        refused |= await request(self.admin, [move for move in ready if move.tp not in refused], self.display)
        for tp, text in refused.items():
            self._refuse(tp, text)

    async def _throttled(self, moves: Sequence[Move], states: Mapping[TopicPartition, PartitionState]) -> list[Move]:
        """Throttle moves; return those that may begin. While one cannot be throttled, what needs it waits."""
        faults = await self.slowing.begin(states.values(), {move.tp: move.after for move in moves})
        self._around.unthrottled |= faults
        if faults:
            # Whether the others are throttled is not known: the next step tries with those.
            await self.slowing.end([move.tp for move in moves])
        return [] if faults else list(moves)

    @property
    def _log_dirs(self) -> Places:
        """The directories that the plan names for the replicas of moves that begin now."""
        return {} if self._work.direction is BACK else self.plan.file.log_dirs

    def _refuse(self, tp: TopicPartition, text: str) -> None:
        """Try a move again that was refused, a few times."""
        self._refusals[tp] += 1
        if self._refusals[tp] >= MOST_REFUSALS:
            self._note_ended(MoveState.FAILED, [tp], text)
            return
        self.display.say(f"{tp}: refused for now: {text}")
        self.journal.add("ended", state=self._work.direction.pending.value, moves=[tp], why="")
        self._work.put_back(tp)

    # --- the ends -------------------------------------------------------------------------------------------------

    async def _abort(self) -> None:
        """Cancel what is in flight, with the order of replicas restored; begin to move back if that is wanted."""
        flying = self._work.in_flight
        if flying and isinstance(self.admin, ZnodeMoves):
            self.display.say(
                f"{len(flying):,} moves end first, as Kafka's controller takes no cancel through ZooKeeper"
            )
            await trio.sleep(LONGEST_PAUSE)
            return
        if flying:
            await cancel(self.admin, flying, self.display)
            await self._note_cancelled(flying)
        await self.slowing.end(list(self.plan.file.targets))
        if self.history.state.phase is Phase.ABORTING_TO_UNDO:
            # Whoever wants it undone knows which brokers are dead by now.
            live = sorted(broker.id for broker in (await self.admin.read_metadata(())).brokers)
            self.journal.add("brokers", brokers=live)
        self._happen(Happening.LANDED)
        self._work, self._time_left = self._work_of_phase(), TimeLeft()

    async def _note_cancelled(self, moves: Sequence[Move]) -> None:
        states = await self._states_of([move.tp for move in moves])
        is_back = {move.tp: move.tp in states and states[move.tp].target_replicas == move.before for move in moves}
        restored = [tp for tp, back in is_back.items() if back]
        self.journal.add("ended", state=self._work.direction.pending.value, moves=restored, why="")
        for tp in restored:
            self._work.put_back(tp)
        self._judge(states, [tp for tp, back in is_back.items() if not back])

    async def _end(self) -> None:
        """Leave nothing behind, and elect the leaders that the plan counts on: before it counts as over."""
        await self.slowing.end(list(self.plan.file.targets))
        if self.history.state.phase is Phase.RUNNING and self.options.elects and self.plan.file.starts:
            done = [move for move in self.moves if self.history.state_of(move.tp) is MoveState.DONE]
            await elect(self.admin, done, await self._states_of([move.tp for move in done]), self.display)

    def _work_of_phase(self) -> Work:
        """Return the moves that are left to be made: forth, or back."""
        if self.history.state.phase in {Phase.UNDOING, Phase.UNDONE}:
            back = {MoveState.DONE, MoveState.GOING_BACK}
            begun = [move for move in self.moves if move.tp in self.history.begun]
            return Work(BACK, [move.reversed for move in begun if self.history.state_of(move.tp) in back])
        forth = {MoveState.PENDING, MoveState.IN_FLIGHT}
        return Work(FORTH, [move for move in self.moves if self.history.state_of(move.tp) in forth])

    async def _states_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """Return the states of all partitions of the topics of these."""
        found = await self.admin.read_metadata(sorted({tp.topic for tp in partitions}))
        return {state.tp: state for state in found.partitions}

    def _show(self) -> None:
        now = trio.current_time()
        is_held = bool(self.history.state.holds)
        if self._last_step is not None and not is_held:
            self._running_seconds += now - self._last_step
        self._last_step = now
        self._time_left.add(self._running_seconds, self._work.left)
        hold = self._around.hold.text if self._around.hold is not None else "by operator" if is_held else ""
        progress = progress_of(self.history, len(self.plan.file.targets), self._work, self._time_left, hold)
        if self.display.show(progress):
            self.journal.note("progress", **progress.entry)
