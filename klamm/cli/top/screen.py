"""The screen of `klamm top`: one table at a time, with the colours of the terminal, or none."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, ClassVar, Final

from attrs import evolve
from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from klamm.cli.output import harmless
from klamm.cli.top.board import tables
from klamm.cli.top.facts import controller_of, counts, moving
from klamm.cli.top.following import Look
from klamm.cli.top.grid import STYLES, Grid
from klamm.cli.top.tables import Order, Table, Tone
from klamm.cli.units import duration, moment
from transport.host import Host

_KEYS: Final = "q quit  ? help  1-4 tab table  < > sort  r reverse  / filter  space look now"
_HELP: Final = """\
klamm top looks at a cluster again and again.

  1 2 3 4      brokers, moves, partitions at risk, rollouts
  tab          the next table; shift+tab the one before
  up down      select a row; its details are below the table
  page up/down home end, or j k g G as in vi
  < >          sort by the column before, or the next one
  r            reverse the order
  s            the order that the table has by itself
  /            show only rows that have all these words
  enter esc    show them; esc: show all rows again
  space        look now, not only after the interval
  q            quit

A yellow or red word is a worry; the words say the same.
Press any key."""


_TABLES: Final = 4


Size = tuple[int, int]
Follow = Callable[[Callable[[Look], None]], Coroutine[Any, Any, None]]
"""Looks at a cluster for ever, and hands over what it sees."""


class OnStdout(LinuxDriver):
    """Draws on stdout, where the output of commands goes; by itself, textual draws on stderr."""

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: Size | None = None) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        assert isinstance(sys.__stdout__, io.TextIOWrapper), "stdout is a terminal"
        # As stderr does it: an encoding may lack the lines of a frame.
        sys.__stdout__.reconfigure(errors="backslashreplace")
        self._file = sys.__stdout__


class Help(ModalScreen[None]):
    """The keys, until one is pressed."""

    CSS = "Help { align: center middle; } #help { width: 64; height: auto; max-height: 100%; border: solid; }"

    def compose(self) -> ComposeResult:
        """Make the text."""
        with VerticalScroll(id="help"):
            yield Static(_HELP, markup=False)

    def on_key(self, event: Key) -> None:
        """Go back."""
        event.stop()
        self.dismiss()


class TopApp(App[None]):
    """Shows looks as they come."""

    CSS = """
    #summary { height: auto; }
    #names { height: 1; }
    Grid { height: 1fr; }
    #detail { height: 3; }
    #keys { height: 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("question_mark,h,f1", "help", "help"),
        *(Binding(str(number), f"table({number - 1})", "table") for number in range(1, 5)),
        Binding("tab,right", "next(1)", "next table", priority=True),
        Binding("shift+tab,left", "next(-1)", "table before", priority=True),
        Binding("less_than_sign", "sort(-1)", "sort"),
        Binding("greater_than_sign", "sort(1)", "sort"),
        Binding("r", "reverse", "reverse"),
        Binding("s", "own_order", "own order"),
        Binding("slash", "filter", "filter"),
        Binding("escape", "clear", "clear"),
        Binding("space", "hurry", "look now"),
    ]

    def __init__(self, where: str, first: Look, follow: Follow, hurry: Callable[[], None]) -> None:
        super().__init__(driver_class=OnStdout, ansi_color=True)
        self.theme = "ansi-dark"
        self._where, self._follow, self._hurry = where, follow, hurry
        self._last = first
        self._trouble: Look | None = None
        self._tables: tuple[Table, ...] = ()
        self._orders = [Order()] * _TABLES
        self._selected: list[Hashable] = [None] * _TABLES
        self._wanted = ""
        self._number = 0
        self._host = Host()
        # Held here, as a query finds only what is on top.
        self._grid = Grid()
        self._lines = {name: Static(id=name, markup=False) for name in ("summary", "names", "detail", "keys")}

    def compose(self) -> ComposeResult:
        """Make the lines of the screen."""
        yield self._lines["summary"]
        yield self._lines["names"]
        yield self._grid
        yield self._lines["detail"]
        yield self._lines["keys"]

    def on_mount(self) -> None:
        """Show the first look, and follow the cluster."""
        self.take(self._last)
        self._draw_keys(None)
        self._grid.focus()
        self.set_interval(1, self._draw_summary)
        self.run_worker(self._follow(self.take), exit_on_error=True)

    def take(self, look: Look) -> None:
        """Show what was seen; if that is trouble, it stands above what was seen before."""
        self._trouble = look if look.reading is None else None
        if look.reading is not None:
            self._last = look
            self._tables = tables(look.reading, look.rollouts)
        self._draw_summary()
        self._draw_table()

    # --- what keys do -------------------------------------------------------------------------------------------

    def action_table(self, number: int) -> None:
        """Show another table."""
        self._number = number
        self._draw_table()

    def action_next(self, by: int) -> None:
        """Show the next table, or the one before."""
        self.action_table((self._number + by) % _TABLES)

    def action_sort(self, by: int) -> None:
        """Sort by another column, of those that are seen."""
        seen = self._grid.columns
        order = self._orders[self._number]
        at = seen.index(order.column) + by if order.column in seen else (0 if by > 0 else -1)
        self._arrange(Order(seen[at % len(seen)], is_reversed=order.is_reversed))

    def action_reverse(self) -> None:
        """Turn the order round."""
        order = self._orders[self._number]
        self._arrange(evolve(order, is_reversed=not order.is_reversed))

    def action_own_order(self) -> None:
        """Sort as the table does by itself."""
        self._arrange(Order())

    def action_filter(self) -> None:
        """Let words be typed."""
        self._grid.type(self._wanted)
        self._draw_keys(self._wanted)

    def action_clear(self) -> None:
        """Forget the words."""
        self._want("")

    def action_hurry(self) -> None:
        """Look now."""
        self._hurry()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    def on_grid_typed(self, event: Grid.Typed) -> None:
        """Show only rows with the words, while they are typed."""
        self._want(event.words)
        self._draw_keys(None if event.is_over else event.words)

    def on_grid_selected(self) -> None:
        """Tell the details of the selected row."""
        row = self._grid.selected
        if row is not None:
            self._selected[self._number] = row.id
        self._lines["detail"].update(Text(harmless(row.detail) if row else ""))

    def _want(self, words: str) -> None:
        self._wanted = words
        self._draw_table()

    # --- drawing ------------------------------------------------------------------------------------------------

    def _arrange(self, order: Order) -> None:
        self._orders[self._number] = order
        self._draw_table()

    def _draw_table(self) -> None:
        table, order = self._tables[self._number], self._orders[self._number]
        self._grid.show(table.arranged(order, self._wanted), order, self._selected[self._number])
        self._draw_names()

    def _draw_names(self) -> None:
        line = Text(no_wrap=True, overflow="ellipsis")
        for number, table in enumerate(self._tables):
            text = f" {number + 1} {table.name} {len(table.rows):,} "
            line.append(text, Style(reverse=number == self._number, bold=number == self._number)).append(" ")
        if self._wanted:
            line.append(f" only rows with: {self._wanted}", STYLES[Tone.WARNING])
        self._lines["names"].update(line)

    def _draw_keys(self, typed: str | None) -> None:
        self._lines["keys"].update(_KEYS if typed is None else f"rows with: {typed}_")

    def _draw_summary(self) -> None:
        assert self._last.reading is not None, "the screen opens with a first look"
        at = moment(self._last.at_ms)[11:]
        first = Text(f"klamm top  {self._where}  {controller_of(self._last.reading)}  {at}", no_wrap=True)
        second = Text("  ").join(Text(count.text, STYLES[count.tone]) for count in counts(self._last.reading))
        third = Text(moving(self._last.reading))
        if self._trouble is not None:
            third = Text(self._told(self._trouble), STYLES[Tone.BAD] + Style(reverse=True))
        self._lines["summary"].update(Text("\n").join([first, second, third]))

    def _told(self, trouble: Look) -> str:
        old = duration(max(self._host.now_ms() - self._last.at_ms, 0))
        return f"NO ANSWER, what is shown is {old} old; trying again: {trouble.trouble}"
