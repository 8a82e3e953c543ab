"""JSON documents of any size: the lists in them are decoded piece by piece, so that memory holds one piece."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import orjson
from attrs import define

from spark_bridge.errors import PlanError
from spark_bridge.inputs.json_words import CUT_OFF, fault_of

_CHUNK = 4 << 20
_FEW = 100
_LONGEST_TOKEN = 1 << 20
_LONGEST_VALUE = 256 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@define
class Document:
    """A JSON document that is being read from its beginning."""

    path: Path
    _file: TextIO
    _text: str = ""
    _at: int = 0
    _lines: int = 1
    _tried: bool = False

    def peek(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._at = space.end()
            if self._at < len(self._text) or not self._read():
                return self._text[self._at : self._at + 1]

    def take(self, wanted: str) -> bool:
        """Skip a character if it is the next one; return whether it was."""
        is_next = self.peek() == wanted
        self._at += is_next
        return is_next

    def expect(self, wanted: str) -> None:
        """Skip the next character, which must be this one.

        Raises:
            PlanError: It is another one.
        """
        if not self.take(wanted):
            raise self._fault(f"{wanted!r} expected" if self.peek() else CUT_OFF)

    def value(self) -> Any:  # noqa: ANN401 (any JSON value)
        """Decode the next value.

        Raises:
            PlanError: It is not JSON.
        """
        while True:
            self.peek()
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._fault("nested too deeply") from None
            except json.JSONDecodeError as error:
                # A value that is merely incomplete so far fails in its last token.
                if len(self._text) - self._at > _LONGEST_VALUE:
                    raise self._fault(f"a value of more than {_LONGEST_VALUE >> 20} MB") from None
                within, is_long = error.pos - self._at, len(self._text) - error.pos > _LONGEST_TOKEN
                if is_long or not self._read():
                    self._at += within
                    raise self._fault(error.msg if is_long else fault_of(error)) from None
                continue
            # A number at the end of the text may continue in the file.
            if end < len(self._text) or not self._read():
                self._at = end
                return value

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; the caller must read the value of each before the next.

        Raises:
            PlanError: It is not a JSON object.
        """
        self.expect("{")
        more = not self.take("}")
        while more:
            key = self.value()
            if not isinstance(key, str):
                raise self._fault("a key must be a string")
            self.expect(":")
            yield key
            more = self.take(",")
            if not more:
                self.expect("}")

    def items(self) -> Iterator[list[Any]]:
        """Yield the values of a list, many at a time.

        Raises:
            PlanError: It is not a JSON list.
        """
        self.expect("[")
        more = not self.take("]")
        while more:
            yield self._run_of_objects() or self._few_values()
            more = self.take(",")
            if not more:
                self.expect("]")

    def end(self) -> None:
        """Check that nothing follows.

        Raises:
            PlanError: Something follows.
        """
        if self.peek():
            raise self._fault("nothing more expected")

    def line(self) -> str:
        """Return the rest of the line after a value, stripped; "" at the end of the file."""
        self.peek()
        while "\n" not in self._text[self._at :] and self._read():
            if len(self._text) - self._at > _LONGEST_TOKEN:
                break
        return self._text[self._at :].partition("\n")[0].strip()

    def _run_of_objects(self) -> list[Any]:
        """Decode all objects of the list that are complete in the text and followed by another.

        The quick decoder must know where they end. If the text up to a brace is not JSON, because the list ends earlier
        or the brace is in a nested object, return nothing: the values in this text are then decoded one by one.
        """
        end = self._text.rfind("},", self._at)
        if self._tried or end < 0:
            return []
        self._tried = True
        try:
            run: list[Any] = orjson.loads(f"[{self._text[self._at : end + 1]}]")
        except orjson.JSONDecodeError:
            return []
        self._at, self._tried = end + 1, False
        return run

    def _few_values(self) -> list[Any]:
        values = [self.value()]
        while len(values) < _FEW and self.take(","):
            values.append(self.value())
        return values

    def _read(self) -> bool:
        """Discard the decoded text and read more; return whether there was any."""
        self._lines += self._text.count("\n", 0, self._at)
        rest = self._text[self._at :]
        more = self._file.read(max(_CHUNK, len(rest)))
        self._text, self._at, self._tried = rest + more, 0, False
        return bool(more)

    def _fault(self, what: str) -> PlanError:
        line = self._lines + self._text.count("\n", 0, self._at)
        return PlanError(f"{self.path}: line {line}: not JSON: {what}")
