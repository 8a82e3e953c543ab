"""Changes of the users of SCRAM, which Kafka's brokers read from the store when they are notified."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from controller.handlers.config_changes import write_settings
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds
from transport.errors import ErrorCode, Fault
from transport.messages.users import AlterScramUsersResponse, UserChanges
from transport.store.scram_users import user_path


def alter_users(context: ControllerContext, users: Sequence[UserChanges]) -> Rounds[AlterScramUsersResponse]:
    """Make all changes of each user, or refuse them."""
    alterations = {user_path(changes.user): partial(_alter, changes) for changes in users}
    faults = yield from write_settings(context, "users", alterations)
    return AlterScramUsersResponse(tuple((each.user, faults.get(user_path(each.user))) for each in users))


def _alter(changes: UserChanges, settings: dict[str, str]) -> Fault | None:
    if any(mechanism not in settings for mechanism in changes.removed):
        return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    for mechanism in changes.removed:
        del settings[mechanism]
    settings.update(changes.added)
    return None
