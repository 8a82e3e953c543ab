"""The inputs of a plan, kept in its folder, so that the same can be planned again from the state of now.

Where Spark runs, and its settings, are left out: they may hold secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen

from klamm.cli.connect import Cluster
from klamm.cli.formats import Format
from klamm.cli.output_files import is_stream
from klamm.cli.planning.options import Options
from klamm.cli.streams import line_of
from spark_bridge.inputs.sources import Url, source_of
from spark_bridge.model.goal import GoalKind
from spark_bridge.process.request import EngineName

MADE_FROM: Final = "made-from.json"
_VERSION: Final = 1
_KEPT: Final = (
    *("set_aside_bad_rows", "brokers", "exclude", "replication_factor", "topics", "tolerance", "leaders"),
    *("ignore_racks", "force", "dead_is_gone"),
)
_SETS: Final = frozenset({"brokers", "exclude"})
_AGAIN: Final = "plan again with `klamm plan`"


@frozen
class MadeFrom:
    """The goal of a plan and its options. Of the cluster it is only known where it was."""

    kind: GoalKind
    cluster: str
    loads: tuple[str, ...]
    brokers_table: str | None
    others: dict[str, Any]

    @classmethod
    def of(cls, kind: GoalKind, options: Options) -> MadeFrom:
        """Return what a plan with these options is made from."""
        live, table = options["live"], options["brokers_table"]
        where = _whole(options["snapshot"] or "") if live is None else live.where
        others: dict[str, Any] = {name: value for name, value in options.items() if name in _KEPT}
        # Releases that do not know the option read the folder of a plan without it.
        if not others.get("dead_is_gone"):
            others.pop("dead_is_gone", None)
        return cls(kind, where, tuple(map(_whole, options["loads"])), None if table is None else _whole(table), others)

    def write(self, folder: Path) -> None:
        """Write it into the folder of a plan. Raises OSError."""
        document = {
            "version": _VERSION,
            "goal": self.kind.value,
            "cluster": self.cluster,
            "loads": self.loads,
            "brokers_table": self.brokers_table,
            "options": {name: sorted(value) if name in _SETS else value for name, value in self.others.items()},
        }
        (folder / MADE_FROM).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> MadeFrom:
        """Read it from the folder of a plan. Raises click.ClickException."""
        path = folder / MADE_FROM
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            others = {name: frozenset(value) if name in _SETS else value for name, value in found["options"].items()}
            if "topics" in others:
                others["topics"] = tuple(others["topics"])
            known = {name: value for name, value in others.items() if name in _KEPT}
            if found["version"] != _VERSION or known.keys() != others.keys():
                raise click.ClickException(f"{path} is of a later release: {_AGAIN}")
            return cls(GoalKind(found["goal"]), found["cluster"], tuple(found["loads"]), found["brokers_table"], known)
        except (FileNotFoundError, NotADirectoryError):
            raise click.ClickException(
                f"{folder} does not say what the plan was made from, as folders of `klamm plan --out` do: {_AGAIN}"
            ) from None
        except OSError as error:
            raise click.ClickException(line_of(error)) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise click.ClickException(f"{path} is damaged: {_AGAIN}") from None

    def options_on(self, cluster: Cluster, *, partial: bool = False) -> Options:
        """Return the options for the same plan from the state of a cluster, or of its visible part if `partial`.

        Raises click.ClickException.
        """
        for name in self._files():
            if not isinstance(source_of(name), Url) and (not Path(name).exists() or is_stream(Path(name))):
                raise click.ClickException(f"{name}, which the plan was made from, is not there any more: {_AGAIN}")
        options: Options = Options(
            snapshot=None,
            live=cluster,
            loads=self.loads,
            partial=partial,
            brokers_table=self.brokers_table,
            engine=EngineName.AUTO.value,
            master=None,
            remote=None,
            conf={},
            timeout=None,
            out=None,
            output=Format.TABLE,
            no_headers=False,
            report=None,
            **self.others,  # type: ignore[typeddict-item]
        )
        return options

    def _files(self) -> Iterator[str]:
        yield from self.loads
        if self.brokers_table is not None:
            yield self.brokers_table


def emptied_by(folder: Path) -> frozenset[int]:
    """Return the brokers that the plan in a folder empties; none if the folder does not say so."""
    try:
        found = MadeFrom.read(folder)
    except click.ClickException:
        return frozenset()
    brokers: frozenset[int] = found.others.get("brokers", frozenset())
    return brokers if found.kind is GoalKind.REMOVE_BROKERS else frozenset()


def _whole(name: str) -> str:
    """Return an input by its whole path, so that it is found from any folder."""
    source = source_of(name)
    return str(source) if isinstance(source, Url) else str(source.absolute())
