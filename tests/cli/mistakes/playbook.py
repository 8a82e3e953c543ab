"""The playbook: command lines as a user types them, and the answer to each.

    $ klamm topic describe nowhere
    1 Error: there is no topic nowhere: see `klamm topic list`

A line of bash, then the exit code and the line that stands on stderr; further lines are indented, and `> ` begins what
stands on stdout. `…` is any text. The head that click puts before a wrong usage, exit code 2, is left out, and stands
there always. `$REFUSED` and the like are addresses, which `scene` has; the files are those of `folder`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Final

from attrs import define, field

FOLDER: Final = Path(__file__).parent / "playbook"
_ANSWER: Final = re.compile(r"(\d+)(?: (.*))?")
_BYTES: Final = re.compile(r"\$'((?:[^'\\]|\\.)*)'")
_OF_A_SHELL: Final = re.compile(r"[|&;]|[<>]&")
_EXPORTED: Final = re.compile(r"export (?P<variables>(?:[A-Z_]+=[^ ;]* ?)+); ")
_INTO_FILE: Final = re.compile(r" (?P<number>2?)> (?P<file>[^ ]+)")


@define
class PlaybookRow:
    """One mistake and its answer."""

    place: str
    typed: str
    code: int = -1
    stdout: list[str] = field(factory=list)
    stderr: list[str] = field(factory=list)

    @property
    def needs_shell(self) -> bool:
        """True if the row is more than a command with its arguments, its files and its environment."""
        return _OF_A_SHELL.search(self._command) is not None

    @property
    def _command(self) -> str:
        """The row without its variables and the files into which it prints."""
        return _INTO_FILE.sub("", _EXPORTED.sub("", self.typed))

    @property
    def files(self) -> dict[str, str]:
        """The files that are its stdout and its stderr, by these names."""
        return {"stderr" if number else "stdout": file for number, file in _INTO_FILE.findall(self.typed)}

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the variables that it sets; `$PWD` is a folder."""
        exported = _EXPORTED.match(self.typed)
        words = shlex.split(exported["variables"].replace("$PWD", str(folder))) if exported else []
        return dict(word.split("=", 1) for word in words)

    def words(self, names: Mapping[str, str]) -> tuple[list[str], str | None, bytes]:
        """Return the arguments after `klamm`, the file that stdin is, if it is one, and else what stands in it."""
        words = [
            _spelled(word) for word in shlex.split(_BYTES.sub(_hidden, Template(self._command).safe_substitute(names)))
        ]
        assert words.pop(0) == "klamm", f"{self.place}: {self.typed}"
        if "<<<" in words:
            at = words.index("<<<")
            return words[:at], None, words[at + 1].encode() + b"\n"
        if "<" in words:
            at = words.index("<")
            return words[:at], words[at + 1], b""
        return words, None, b""


def _hidden(match: re.Match[str]) -> str:
    """Keep what stands in $'...' from being read as words."""
    return "'\0" + match[1].encode().hex() + "\0'"


def _spelled(word: str) -> str:
    def spell(match: re.Match[str]) -> str:
        escaped = bytes.fromhex(match[1]).decode("unicode_escape").encode("latin-1")
        return escaped.decode("utf-8", "surrogateescape")

    return re.sub("\0([0-9a-f]*)\0", spell, word)


def rows(file: Path) -> list[PlaybookRow]:
    """Read one page."""
    return list(_rows(file))


def _rows(file: Path) -> Iterator[PlaybookRow]:
    row = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("$ "):
            if row is not None:
                yield row
            row = PlaybookRow(f"{file.stem}:{number}", line[2:])
        elif row is not None and line.startswith("> "):
            row.stdout.append(line[2:])
        elif row is not None and line.startswith("  "):
            row.stderr.append(line[2:])
        elif row is not None and (answer := _ANSWER.fullmatch(line)):
            row.code = int(answer[1])
            row.stderr += [answer[2]] if answer[2] else []
        else:
            assert not line or line.startswith("#"), f"{file.name}:{number}: {line}"
    if row is not None:
        yield row


def agrees(said: str, wanted: str, names: Mapping[str, str]) -> bool:
    """Return whether a line is the one that stands in the playbook, in which `…` is any text."""
    pieces = map(re.escape, Template(wanted).safe_substitute(names).split("…"))
    return re.fullmatch(".*".join(pieces), said) is not None
