"""Making one plan: early checks, planning with progress, and then all files or none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import Progress as Bar, SpinnerColumn, TextColumn, TimeElapsedColumn

from controller.admin.planning import compute_plan
from klamm.cli.formats import Format, View, show as show_document
from klamm.cli.output_files import check_file, is_stream, write_output
from klamm.cli.planning.live import live_inputs, require_one_cluster
from klamm.cli.planning.made_from import MadeFrom
from klamm.cli.planning.options import Options, request_of
from klamm.cli.planning.places import check_output, plan_folder, publish, workplace
from klamm.cli.progress import Lines, is_animated, is_lines_only
from klamm.cli.running import run
from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import Source, Url, source_of
from spark_bridge.model.goal import GoalKind
from spark_bridge.model.summary import Summary
from spark_bridge.process.request import PlanRequest
from spark_bridge.progress import Progress, in_words
from transport.input_files import Limit, UnreadableFile, read_pieces

PIPE: Final = Limit(16 * 1024, "give it as a file")
DEVICE: Final = Limit(16, "name a file or a pipe")
"""A device may never end."""


def make_plan(kind: GoalKind, options: Options) -> None:
    """Make a plan, put its files in place, and report the changes.

    Raises:
        click.UsageError: Options are wrong whatever the cluster and the files are like; nothing was begun.
        click.ClickException: No plan was made; nothing was written.
    """
    require_one_cluster(options)
    _check_values(kind, options)
    _check_places(options)
    with workplace(options["out"]) as place:
        folder = plan_folder(options["out"], place)
        summary = plan_into(folder, place, kind, options)
        if isinstance(folder, Path):
            MadeFrom.of(kind, options).write(folder)
        _write(summary, folder, options)
    _report(summary, options["output"], headers=not options["no_headers"])


def plan_into(folder: Source, place: Path, kind: GoalKind, options: Options) -> Summary:
    """Plan into a new folder; `place` is one for what planning needs meanwhile.

    Raises:
        click.ClickException: There is no plan.
    """
    with live_inputs(options, place) as inputs, without_pipes(inputs, place) as files:
        try:
            request = request_of(kind, files, folder)
        except PlanError as error:
            raise click.ClickException(str(error)) from None
        return _computed(request)


def _check_values(kind: GoalKind, options: Options) -> None:
    """Raise click.UsageError for values that no plan takes."""
    snapshot = options["snapshot"] or "a cluster that is not read yet"
    try:
        request_of(kind, options | Options(snapshot=snapshot), source_of(options["out"] or ".")).to_json()
    except PlanError as error:
        raise click.UsageError(str(error)) from None


def _check_places(options: Options) -> None:
    out, report, master = options["out"], options["report"], options["master"]
    form = options["output"]
    if form.is_document and out is None:
        raise click.UsageError(f"-o {form} prints to stdout, where the plan goes without --out: give --out")
    is_on_cluster = options["remote"] or (master or "local").partition("[")[0] != "local"
    if is_on_cluster and (out is None or is_stream(Path(out))):
        raise click.UsageError("on a cluster, workers write the plan: give --out, a place that all of them share")
    if out is not None:
        check_output(out)
    if report is not None:
        check_file(Path(report))
        _require_templates()


def _require_templates() -> None:
    """Raise click.ClickException if the HTML page could not be written once the plan is made."""
    try:
        import_module("spark_bridge.report.page")
    except ModuleNotFoundError as error:
        raise click.ClickException(f"the HTML report needs {error.name}: pip install 'klamm[plan]'") from None


@contextmanager
def without_pipes(options: Options, place: Path) -> Iterator[Options]:
    """Yield options whose inputs are all files: the contents of pipes are copied to a folder.

    Raises:
        click.ClickException: An input cannot be read. Errors of the block name inputs as the user gave them.
    """
    names: dict[str, str] = {}

    def kept(name: str) -> str:
        path = source_of(name)
        if isinstance(path, Url) or not path.exists() or not is_stream(path):
            return name
        limit = PIPE if path.is_fifo() or path.is_socket() else DEVICE
        copy = place / f"input-{len(names)}"
        try:
            with copy.open("wb") as file:
                file.writelines(read_pieces(path, limit))
        except UnreadableFile as fault:
            raise click.ClickException(str(fault)) from None
        names[str(copy)] = name
        return str(copy)

    snapshot, table = options["snapshot"], options["brokers_table"]
    files = Options(
        snapshot=None if snapshot is None else kept(snapshot),
        loads=tuple(map(kept, options["loads"])),
        brokers_table=None if table is None else kept(table),
    )
    try:
        yield options | files
    except click.ClickException as error:
        text = error.message
        for copy, name in names.items():
            text = text.replace(copy, name)
        raise click.ClickException(text) from None


def _computed(request: PlanRequest) -> Summary:
    """Plan in a separate process; on a terminal, show the progress in a line."""
    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    lines = Lines() if is_lines_only(console) else None
    with Bar(*columns, console=console, transient=True, disable=not is_animated(console)) as bar:
        task = bar.add_task("starting")

        def show(progress: Progress) -> None:
            if progress.ui is not None:
                console.print(f"Spark's UI: {progress.ui}", soft_wrap=True)
            bar.update(task, description=in_words(progress))
            if lines is not None:
                lines.tell(in_words(progress))

        return run(partial(compute_plan, request, show), PlanError)


def _write(summary: Summary, folder: Source, options: Options) -> None:
    """Put the report page and the plan's files in place.

    Raises:
        OSError: They cannot be written.
    """
    if options["report"] is not None:
        from spark_bridge.report.page import html

        write_output(Path(options["report"]), [html(summary)])
    if isinstance(folder, Path):
        publish(folder, options["out"])


def _report(summary: Summary, output: Format, *, headers: bool) -> None:
    from klamm.cli.plan_report import print_report, print_warnings
    from spark_bridge.report.document import document

    if output.is_document:
        show_document(View(document(summary), ()), output)
        print_warnings(summary, sys.stderr)
    else:
        print_report(summary, sys.stderr, is_wide=output is Format.WIDE, headers=headers)
