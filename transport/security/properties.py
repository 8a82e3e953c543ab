"""Files of properties, as Java writes and reads them: `client.properties` of Kafka's tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

from transport.input_files import Limit, UnreadableFile, read_text
from transport.security.errors import InvalidSecurity

_LIMIT: Final = Limit(1, "this is no file of properties")
_KEY: Final = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_CONTROLS: Final = MappingProxyType({"t": "\t", "n": "\n", "r": "\r", "f": "\f"})


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties in a file. Raises InvalidSecurity if it cannot be read."""
    try:
        return parse_properties(read_text(path, _LIMIT))
    except UnreadableFile as error:
        raise InvalidSecurity(str(error)) from None


def parse_properties(text: str) -> dict[str, str]:
    """Return properties by name. Of those with equal names the last one counts."""
    matches = [_KEY.fullmatch(line) for line in _lines(text)]
    return {_unescape(match["key"]): _unescape(match["value"]) for match in matches if match is not None}


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that are no comments. A backslash at its end continues a line."""
    begun = ""
    for line in re.split(r"\r\n|\r|\n", text):
        part = line.lstrip(" \t\f")
        if not begun and (not part or part[0] in "#!"):
            continue
        backslashes = len(part) - len(part.rstrip("\\"))
        if backslashes % 2:
            begun += part[:-1]
            continue
        yield begun + part
        begun = ""
    if begun:
        yield begun


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        return _CONTROLS.get(escaped, escaped)

    return _ESCAPE.sub(character, text)
