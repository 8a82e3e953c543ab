"""Principals: who is at the other end of a connection, as Kafka names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from transport.security.errors import AuthenticationFailed, InvalidSecurity

USER: Final = "User"

_DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<name>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
)
_BETWEEN_RULES: Final = re.compile(r"\s*,\s*")
_REFERENCE: Final = re.compile(r"\$([0-9])|\\(.)")


@frozen
class Principal:
    """A principal, written `User:alice`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""The principal of a client that has not been asked for its name."""


def parse_principal(text: str) -> Principal:
    """Return the principal that a text such as `User:alice` names. Raises ValueError."""
    type_, colon, name = text.strip().partition(":")
    if not (type_ and colon and name):
        raise ValueError(f"a principal is TYPE:NAME, such as User:alice, not {text[:100]!r}")
    return Principal(type_, name)


@frozen
class MappingRule:
    """A rule of `ssl.principal.mapping.rules`, which makes a user's name of a certificate's distinguished name.

    The pattern has to match the whole of the distinguished name. Without a pattern (DEFAULT), the name is all of it.
    """

    pattern: re.Pattern[str] | None = None
    name: str = ""
    case: str = ""

    def apply(self, distinguished_name: str) -> str | None:
        """Return the user's name; None if the rule does not match."""
        if self.pattern is None:
            return distinguished_name
        match = self.pattern.fullmatch(distinguished_name)
        if match is None:
            return None
        name = _REFERENCE.sub(lambda part: part[2] or match[int(part[1])] or "", self.name)
        return {"L": name.lower(), "U": name.upper()}.get(self.case, name)


BY_DEFAULT: Final = (MappingRule(),)


def parse_mapping_rules(text: str) -> Sequence[MappingRule]:
    """Return the rules of `ssl.principal.mapping.rules`, in order. Raises InvalidSecurity."""
    return tuple(_rules(text.strip())) or BY_DEFAULT


def mapped_principal(rules: Sequence[MappingRule], distinguished_name: str) -> Principal:
    """Return the principal of the first rule that matches. Raises AuthenticationFailed if none does."""
    for rule in rules:
        name = rule.apply(distinguished_name)
        if name is not None:
            return Principal(USER, name)
    raise AuthenticationFailed(f"no rule of ssl.principal.mapping.rules matches {distinguished_name[:200]!r}")


def _rules(text: str) -> Iterator[MappingRule]:
    at = 0
    while at < len(text):
        match = _RULE.match(text, at)
        end = match.end() if match is not None else at
        separator = _BETWEEN_RULES.match(text, end)
        if match is None or not (separator or end == len(text)):
            raise InvalidSecurity(
                f"ssl.principal.mapping.rules: {text[at : at + 100]!r} is not a rule:"
                " write RULE:PATTERN/REPLACEMENT/, with L or U after it for lower or upper case, or DEFAULT"
            )
        yield MappingRule() if match["default"] else _rule(match)
        at = separator.end() if separator is not None else end


def _rule(match: re.Match[str]) -> MappingRule:
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise InvalidSecurity(
            f"ssl.principal.mapping.rules: the pattern {match['pattern'][:100]!r} is not valid ({error})"
        ) from None
    numbers = [int(part[1]) for part in _REFERENCE.finditer(match["name"]) if part[1]]
    if max(numbers, default=0) > pattern.groups:
        raise InvalidSecurity(
            f"ssl.principal.mapping.rules: {match['name'][:100]!r} refers to a group that the pattern does not have"
        )
    return MappingRule(pattern, match["name"], match["case"])
