"""Changes of the users of SCRAM, which Kafka's brokers read from the store when they are notified."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from controller.handlers.config_changes import NEXT_NOTICE, unused_notices
from controller.model.rounds import Rounds, Step, attempt, read, until_none_is_left
from transport.errors import ErrorCode, Fault
from transport.log import get_logger
from transport.messages.users import AlterScramUsersResponse, UserChanges
from transport.store import formats
from transport.store.protocol import Create, Znode, write_over
from transport.store.scram_users import user_path

log = get_logger(__name__)


def alter_users(users: Sequence[UserChanges]) -> Rounds[AlterScramUsersResponse]:
    """Make the changes of each user in one multi with their notification, or refuse them."""
    faults: dict[str, Fault | None] = {change.user: None for change in users}
    is_refused = False

    def write(pending: list[UserChanges]) -> Rounds[list[UserChanges]]:
        nonlocal is_refused
        notices = (yield from unused_notices(len(pending))) if is_refused else [NEXT_NOTICE] * len(pending)
        is_refused = True
        znodes = yield from read(user_path(change.user) for change in pending)
        steps: dict[str, Step] = {}
        for change, znode, notice in zip(pending, znodes, notices, strict=True):
            step = _step(change, znode, notice)
            if isinstance(step, Step):
                steps[change.user] = step
            else:
                faults[change.user] = step
        outcome = yield from attempt("users", list(steps.values()))
        text = "the user cannot be written: see the controller's log"
        faults.update((u, (ErrorCode.OPERATION_NOT_ATTEMPTED, text)) for u, s in steps.items() if s in outcome.rejected)
        return [change for change in pending if steps.get(change.user) in outcome.refused]

    yield from until_none_is_left("users", users, write)
    return AlterScramUsersResponse(tuple(faults.items()))


def _step(change: UserChanges, znode: Znode | None, notice: Create) -> Step | Fault:
    path = user_path(change.user)
    try:
        settings = {} if znode is None else formats.decode_config(path, znode.data)
    except formats.UndecodableZnode as fault:
        return ErrorCode.UNKNOWN_SERVER_ERROR, f"{fault}: repair or delete it first"
    if any(mechanism not in settings for mechanism in change.removed):
        return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    left = {name: value for name, value in settings.items() if name not in change.removed}
    data = formats.encode_config({**left, **dict(change.added)})
    entity = path.removeprefix("/config/")
    told = replace(notice, data=formats.encode_config_change(entity))
    log.info("user altered", entity=entity, removed=change.removed, added=[name for name, _ in change.added])
    return Step(writes=(write_over(znode, path, data), told))
