"""The subject of a certificate as text, exactly as Java writes it (RFC 2253): Kafka's ACLs name it that way.

The most specific part comes first. Types that RFC 2253 does not name are written as numbers, with their values in
hexadecimal: `CN=klamm,O=Example,1.2.840.113549.1.9.1=#160b...`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from attrs import frozen

from transport.security.errors import AuthenticationFailed

_KEYWORDS: Final = MappingProxyType(
    {
        "2.5.4.3": "CN",
        "2.5.4.6": "C",
        "2.5.4.7": "L",
        "2.5.4.8": "ST",
        "2.5.4.9": "STREET",
        "2.5.4.10": "O",
        "2.5.4.11": "OU",
        "0.9.2342.19200300.100.1.25": "DC",
        "0.9.2342.19200300.100.1.1": "UID",
    }
)
_ENCODINGS: Final = MappingProxyType(
    {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 27: "ascii", 30: "utf-16-be"}
)
"""The encoding of each type of string (UTF8, Printable, T61, IA5, General, BMP)."""

_SPECIAL: Final = frozenset(',=+<>#;"\\')
_VERSION: Final = 0xA0
_LONG: Final = 0x80
_FIELDS_BEFORE_SUBJECT: Final = 4
"""Serial number, algorithm, issuer and validity."""


@frozen
class _Value:
    """A value in DER: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises AuthenticationFailed for a certificate without one."""
    try:
        [signed, *_] = _values(next(_values(certificate)).content)
        fields = [value for value in _values(signed.content) if value.tag != _VERSION]
        parts = [_part(part.content) for part in _values(fields[_FIELDS_BEFORE_SUBJECT].content)]
    except (StopIteration, ValueError, IndexError):
        raise AuthenticationFailed("the certificate of the peer has no subject that can be read") from None
    if not parts:
        raise AuthenticationFailed("the certificate of the peer has an empty subject")
    return ",".join(reversed(parts))


def _part(content: bytes) -> str:
    """Return a part of the name, which may have several attributes."""
    pairs = [list(_values(pair.content)) for pair in _values(content)]
    return "+".join(_attribute(_object_id(kind.content), value) for kind, value in pairs)


def _attribute(kind: str, value: _Value) -> str:
    keyword, encoding = _KEYWORDS.get(kind), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or kind}=#{value.whole.hex()}"
    return f"{keyword}={_escape(value.content.decode(encoding))}"


def _escape(text: str) -> str:
    inner = text.strip(" \r")
    lead = text[: len(text) - len(text.lstrip(" \r"))]
    trail = text[len(lead) + len(inner) :]
    escaped = "".join(f"\\{character}" if character in _SPECIAL else character for character in inner)
    around = ["".join(f"\\{character}" for character in edge) for edge in (lead, trail)]
    return f"{around[0]}{escaped}{around[1]}".replace("\0", "\\00")


def _object_id(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & (_LONG - 1)
        if byte < _LONG:
            numbers.append(number)
            number = 0
    top = min(numbers[0] // 40, 2)
    return ".".join(map(str, [top, numbers[0] - 40 * top, *numbers[1:]]))


def _values(data: bytes) -> Iterator[_Value]:
    """Yield the values that follow each other. Raises ValueError or IndexError for data that are none."""
    at = 0
    while at < len(data):
        tag, length, start = data[at], data[at + 1], at + 2
        if length >= _LONG:
            size = length - _LONG
            length, start = int.from_bytes(data[start : start + size], "big"), start + size
        if start + length > len(data):
            raise ValueError("a value ends beyond its container")
        yield _Value(tag, data[start : start + length], data[at : start + length])
        at = start + length
