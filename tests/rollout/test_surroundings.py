"""The cluster as a rollout from outside sees it: the room that brokers told, and what has begun since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from attrs import define, evolve

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.move_admin import MoveAdmin
from controller.rollout.choosing import Limits, choose
from controller.rollout.moves import Move
from controller.rollout.room import Disk
from controller.rollout.waiting import Reason
from klamm.cli.rollout.brakes import Brakes
from klamm.cli.rollout.surroundings import Surroundings
from transport.errors import ErrorCode
from transport.kafka.volume import Volume
from transport.messages import LogDir

MOVES = [Move("t", number, (1, 2), (3, 2), 40) for number in range(4)]


@define
class Brokers:
    """Brokers with two directories, of 100 and of 60 free bytes."""

    asked: int = 0

    async def describe_log_dirs(self, broker_ids: Sequence[int]) -> dict[int, BrokerLogDirs]:
        self.asked += 1
        dirs = tuple(LogDir(path, ErrorCode.NONE, ()) for path in ("/a", "/b"))
        told = BrokerLogDirs(dirs, volumes={"/a": Volume(1_000, 100), "/b": Volume(900, 60)})
        return dict.fromkeys(broker_ids, told)


async def test_room_is_that_of_the_directory_that_the_plan_names_less_what_has_begun(autojump_clock: object) -> None:
    assert autojump_clock
    brokers = Brokers()
    admin = cast("MoveAdmin", brokers)
    around = Surroundings(admin, MOVES, Brakes(admin, ()), checks_room=True)
    await around.look_at_room([3], MOVES[:1])
    around.use_room(MOVES[1:2])
    await around.look_at_room([3], ())
    standing = around.standing((), {(MOVES[2].tp, 3): "/b", (MOVES[3].tp, 3): "/b"})
    assert standing.disks == {3: Disk(160, 100, {"/a": 100, "/b": 60})}
    assert (standing.taken, brokers.asked) == (tuple(MOVES[:2]), 1)
    leaders = {move.tp: 1 for move in MOVES}
    choice = choose(MOVES[2:], [], Limits(), evolve(standing, leaders=leaders))
    assert [move.partition for move in choice.begin] == [2]
    assert choice.waits[MOVES[3].tp].reason is Reason.ROOM
