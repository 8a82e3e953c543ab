"""The rollout that a command is about: one from outside, whose journal is beside its plan, or one of a controller's."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import click
from attrs import frozen
from click.shell_completion import CompletionItem

from controller.admin.client import AdminClient
from controller.admin.move_admin import MoveAdmin
from controller.admin.plan_ids import PlanIds
from klamm.cli.connect import Cluster
from klamm.cli.names import is_text
from klamm.cli.rollout.plan_files import PlanFiles
from transport.errors import ApiError, ErrorCode
from transport.wire import UnsupportedApi

T = TypeVar("T")

NAME: Final = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,100}")
_FROM_OUTSIDE: Final = (
    "the controller of this cluster carries out no rollouts of its own: `klamm rollout run` does it from outside"
)


class NotItsOwn(click.ClickException):
    """The controller of the cluster carries out no rollouts."""


class RolloutName(click.ParamType[str]):
    """A rollout: its name, or the plan that it carries out."""

    name = "rollout"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name or path. Fail if it can be neither."""
        if not value or not is_text(value) or (not NAME.fullmatch(value) and not Path(value).exists()):
            self.fail(f"{value!r} is neither a plan here nor the name of a rollout", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  as click has it
        """Return files, and the names of a controller's rollouts that begin so."""
        from klamm.cli.completions import rollouts_of

        names = [CompletionItem(name) for name in rollouts_of(ctx) if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file"), *names]


rollout_argument = click.argument("rollout", metavar="ROLLOUT", type=RolloutName())


@frozen
class Named:
    """The name that an operator gives a rollout."""

    text: str

    @property
    def from_outside(self) -> PlanFiles | None:
        """The plan, if its rollout is carried out from outside."""
        files = PlanFiles(Path(self.text))
        return files if files.path.exists() and files.journal.exists() else None

    @property
    def name(self) -> str:
        """The name of the controller's rollout."""
        path = Path(self.text)
        return name_of(path) if path.exists() else self.text

    def ids_for(self, other_cluster: bool) -> PlanIds | None:
        """Return the ids in the plan, if it is here and must be one for the cluster."""
        path = Path(self.text)
        if other_cluster or not path.exists():
            return None
        try:
            return PlanFiles(path).read().file.ids
        except click.ClickException:
            return None  # only something of the name of the rollout

    def ask(self, cluster: Cluster, question: Callable[[AdminClient, str], Awaitable[T]]) -> T:
        """Ask the controller about its rollout of this name. Raises click.ClickException."""
        try:
            return cluster.ask_moves(partial(asked, question=lambda admin: question(admin, self.name)))
        except click.ClickException as error:
            if isinstance(error, Refused) or not Path(self.text).exists():
                raise
            begins = "`klamm rollout run` begins one"
            if isinstance(error, NotItsOwn):
                raise click.ClickException(f"no rollout of {self.text} has begun: {begins}") from None
            if isinstance(error, Nowhere):
                begins = f"{begins}, `klamm rollout start` lets the controller carry it out"
                raise click.ClickException(f"no rollout of {self.text} has begun: {begins}") from None
            raise click.ClickException(
                f"no rollout of {self.text} has begun from here, and the controller cannot be asked: {error.message}"
            ) from None


class Refused(click.ClickException):
    """The controller knows the rollout, and refuses the order."""


class Nowhere(click.ClickException):
    """The controller has no rollout of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no rollout {name}: see `klamm rollout list`")


async def asked(admin: MoveAdmin, question: Callable[[AdminClient], Awaitable[T]]) -> T:
    """Ask a controller that carries out rollouts. Raises NotItsOwn if it does not, Refused if it does not comply."""
    if not isinstance(admin, AdminClient):
        raise NotItsOwn(_FROM_OUTSIDE)
    try:
        return await question(admin)
    except UnsupportedApi:
        raise NotItsOwn(f"{_FROM_OUTSIDE}, or upgrade it first") from None
    except ApiError as refusal:
        if refusal.code is not ErrorCode.INVALID_REQUEST:
            raise
        raise Refused(refusal.message) from None


def name_of(plan: Path) -> str:
    """Return the name that the rollout of a plan gets: that of the folder or file."""
    return plan.stem if plan.is_file() else plan.resolve().name


def operator() -> str:
    """Return who gives the order."""
    return f"{getpass.getuser()} on {socket.gethostname()}"
