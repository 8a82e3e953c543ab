"""The value of `sasl.jaas.config`: one login module with its options, in the syntax of Java's JAAS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from transport.security.errors import InvalidSecurity
from transport.security.plain import PLAIN
from transport.security.sasl import OAUTHBEARER
from transport.security.scram import MECHANISMS as SCRAM

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"

OAUTHBEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

_MECHANISMS: Final = MappingProxyType(
    {PLAIN_MODULE: (PLAIN,), SCRAM_MODULE: tuple(SCRAM), OAUTHBEARER_MODULE: (OAUTHBEARER,)}
)
_UNSUPPORTED: Final = MappingProxyType(
    {
        "com.sun.security.auth.module.Krb5LoginModule": "GSSAPI (Kerberos)",
        "com.ibm.security.auth.module.Krb5LoginModule": "GSSAPI (Kerberos)",
        "software.amazon.msk.auth.iam.IAMLoginModule": "AWS_MSK_IAM",
    }
)
"""The mechanisms of login modules that are often seen, and are not supported."""

_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<end>;)|(?P<equals>=)|"(?P<quoted>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)'|(?P<word>[^\s=;"']+))""",
    re.DOTALL,
)
_USER: Final = "user_"
_SYNTAX: Final = 'write MODULE required username="NAME" password="PASSWORD";'


@frozen
class LoginModule:
    """A login module of Kafka's, and its options."""

    mechanisms: tuple[str, ...]
    """The mechanisms that it can be for."""

    options: Mapping[str, str] = field(repr=False)

    @property
    def passwords(self) -> dict[str, str]:
        """The passwords of the users that a server knows, from the options `user_NAME`."""
        names = [name for name in self.options if name.startswith(_USER)]
        return {name.removeprefix(_USER): self.options[name] for name in names}


def parse_jaas(name: str, text: str) -> LoginModule:
    """Return the module in the value of a setting. Raises InvalidSecurity, which does not show the value."""
    tokens = list(_tokens(name, text))
    if len(tokens) < len(("module", "flag", "end")) or tokens[-1] != ("end", ";"):
        raise InvalidSecurity(f"{name} has to end with a semicolon: {_SYNTAX}")
    (_, module), (_, flag), *pairs, _ = tokens
    if module in _UNSUPPORTED:
        mechanisms = ", ".join(chain.from_iterable(_MECHANISMS.values()))
        raise InvalidSecurity(f"{name}: the mechanism {_UNSUPPORTED[module]} is not supported: use one of {mechanisms}")
    if module not in _MECHANISMS:
        raise InvalidSecurity(f"{name}: the module {module[:100]!r} is none of {', '.join(_MECHANISMS)}")
    if flag.lower() not in _FLAGS:
        raise InvalidSecurity(f"{name}: the module has to be followed by a flag: {_SYNTAX}")
    options: dict[str, str] = {}
    for at in range(0, len(pairs), 3):
        kinds, values = [kind for kind, _ in pairs[at : at + 3]], [value for _, value in pairs[at : at + 3]]
        if len(kinds) < len(("key", "=", "value")) or kinds[1] != "equals" or kinds[2] in ("equals", "end"):
            raise InvalidSecurity(f"{name}: option {at // 3 + 1} is not NAME=VALUE: {_SYNTAX}")
        options[values[0]] = values[2]
    return LoginModule(_MECHANISMS[module], MappingProxyType(options))


def _tokens(name: str, text: str) -> list[tuple[str, str]]:
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidSecurity(f"{name} has a quote without its end: {_SYNTAX}")
        kind = str(match.lastgroup)
        value = re.sub(r"\\(.)", r"\1", match[kind]) if kind in ("quoted", "single") else match[kind]
        found.append((kind, value))
        at = match.end()
    return found
