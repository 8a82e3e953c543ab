"""A table on the screen: only the lines that are seen are made, so that 100,000 rows cost no more than ten."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from klamm.cli.top.tables import Order, Place, Row, Table, Tone, fitted, head, parts_of

STYLES: Final = {
    Tone.PLAIN: Style(),
    Tone.FAINT: Style(dim=True),
    Tone.GOOD: Style(color="green"),
    Tone.WARNING: Style(color="yellow"),
    Tone.BAD: Style(color="red", bold=True),
}
_HEAD: Final = Style(bold=True, underline=True)
_SELECTED: Final = Style(reverse=True)
_ENDS: Final = ("enter", "escape")


class Grid(ScrollView, can_focus=True):
    """A table with a selected row, which stays selected when rows come, go, or change their places."""

    DEFAULT_CSS = "Grid { scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("home,g", "move(-1_000_000_000)", "first", show=False),
        Binding("end,G", "move(1_000_000_000)", "last", show=False),
    ]

    class Selected(Message):
        """Another row is selected, or none."""

    class Typed(Message):
        """The words that rows must have are typed: so far, and whether that is all."""

        def __init__(self, words: str, *, is_over: bool) -> None:
            super().__init__()
            self.words, self.is_over = words, is_over

    def __init__(self) -> None:
        super().__init__()
        self._table = Table("", (), (), "")
        self._order = Order()
        self._places: Sequence[Place] = ()
        self._at = 0
        self._typed: str | None = None

    @property
    def selected(self) -> Row | None:
        """The selected row."""
        return self._table.rows[self._at] if self._table.rows else None

    @property
    def columns(self) -> list[int]:
        """The columns that are seen, from the left."""
        return [place.column for place in self._places]

    def show(self, table: Table, order: Order, selected: Hashable = None) -> None:
        """Show a table whose rows are arranged, and select the row with an identity if there is one."""
        if table.name != self._table.name:
            self._at = 0
        self._table, self._order = table, order
        self._at = next((number for number, row in enumerate(table.rows) if row.id == selected), self._at)
        self._at = max(0, min(self._at, len(table.rows) - 1))
        self._fit()
        self._see()

    def on_resize(self) -> None:
        """Fit the columns to another width."""
        self._fit()
        self._see()

    def action_move(self, by: int) -> None:
        """Select another row."""
        self._at = max(0, min(self._at + by, len(self._table.rows) - 1))
        self._see()

    def action_page(self, by: int) -> None:
        """Select the row a page further."""
        self.action_move(by * max(self.size.height - 2, 1))

    def type(self, words: str) -> None:
        """Take the keys that follow as words, up to enter or escape."""
        self._typed = words

    def on_key(self, event: Key) -> None:
        """Take a key as part of words if they are being typed.

        A field with a focus of its own would lose the keys that come before it has the focus.
        """
        if self._typed is None:
            return
        event.stop()
        event.prevent_default()
        words, is_over = self._typed, event.key in _ENDS
        if event.key == "escape":
            words = ""
        elif event.key == "backspace":
            words = words[:-1]
        elif event.is_printable and event.character is not None:
            words += event.character
        self._typed = None if is_over else words
        self.post_message(self.Typed(words, is_over=is_over))

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen: the names of the columns, and below them the rows that are scrolled to."""
        if y == 0:
            return self._strip([Segment(head(self._table, self._places, self._order).ljust(self._room), _HEAD)])
        number = y - 1 + self.scroll_offset.y
        if number < len(self._table.rows):
            return self._row(number)
        if y == 1:
            return self._strip([Segment(self._table.empty, STYLES[Tone.FAINT])])
        return Strip.blank(self._room)

    def _row(self, number: int) -> Strip:
        row = self._table.rows[number]
        parts = parts_of(self._table, row, self._places)
        if number != self._at:
            return self._strip([Segment(text, STYLES[tone]) for text, tone in parts])
        bold = [Segment(text, _SELECTED + Style(bold=tone is Tone.BAD)) for text, tone in parts]
        return self._strip(bold, _SELECTED)

    def _strip(self, segments: list[Segment], filling: Style | None = None) -> Strip:
        return Strip(segments).adjust_cell_length(self._room, filling)

    @property
    def _room(self) -> int:
        return self.scrollable_content_region.width

    def _fit(self) -> None:
        room = self._room
        self.virtual_size = Size(room, len(self._table.rows) + 1)
        self._places = fitted(self._table, room) if room else ()

    def _see(self) -> None:
        """Scroll to the selected row, and draw everything."""
        height = max(self.size.height - 1, 1)
        top = self.scroll_offset.y
        if self._at < top or self._at >= top + height:
            top = self._at if self._at < top else self._at - height + 1
            self.scroll_to(y=top, animate=False, force=True, immediate=True)
        self.refresh()
        self.post_message(self.Selected())
