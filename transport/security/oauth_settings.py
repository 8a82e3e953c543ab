"""The settings of OAUTHBEARER under Kafka's names: where tokens come from, for whom, and when they are renewed.

Kafka 4.1 has settings for what releases before it have as options of the login module; the settings come first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from transport.security.errors import InvalidSecurity
from transport.security.tls import Tls
from transport.security.token_endpoint import URL, ClientCredentials
from transport.security.tokens import UNSIGNED_SECONDS, Refresh, Tokens, TokenSource, UnsignedTokens

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_HANDLER: Final = "sasl.login.callback.handler.class"
_OF_ENDPOINT: Final = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
_OF_UNSIGNED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS: Final = (f"{_PACKAGE}.DefaultJwtRetriever", f"{_PACKAGE}.ClientCredentialsJwtRetriever")

_CLIENT: Final = ("sasl.oauthbearer.client.credentials.client.id", "clientId")
_SECRET: Final = ("sasl.oauthbearer.client.credentials.client.secret", "clientSecret")
_SCOPE: Final = ("sasl.oauthbearer.scope", "scope")
_ENCODES: Final = "sasl.oauthbearer.header.urlencode"
_EXTENSION: Final = "extension_"

_LIMITS: Final = MappingProxyType(
    {
        "window.factor": (0.5, 1.0),
        "window.jitter": (0.0, 0.25),
        "min.period.seconds": (0.0, 900.0),
        "buffer.seconds": (0.0, 3600.0),
    }
)
"""The values that Kafka accepts for the settings `sasl.login.refresh.*`."""

_UNSIGNED: Final = "unsecuredLogin"
_CLAIM: Final = re.compile(r"unsecuredLogin(?P<kind>String|Number|List)Claim_(?P<name>.+)")


def tokens_of(values: Mapping[str, str], options: Mapping[str, str], tls: Tls) -> Tokens:
    """Return the tokens that settings and the options of the login module ask for. Raises InvalidSecurity."""
    source: TokenSource = _unsigned(options) if _wants_unsigned(values, options) else _endpoint(values, options, tls)
    extensions = {name.removeprefix(_EXTENSION): options[name] for name in options if name.startswith(_EXTENSION)}
    return Tokens(source, _refresh(values), MappingProxyType(extensions))


def _wants_unsigned(values: Mapping[str, str], options: Mapping[str, str]) -> bool:
    """Return whether tokens are made here; Kafka makes them unless a handler is named."""
    handler, retriever = values.get(_HANDLER), values.get(_RETRIEVER)
    if handler and handler not in (*_OF_ENDPOINT, _OF_UNSIGNED):
        raise InvalidSecurity(f"{_HANDLER} is {handler[:100]!r}: the only one that is supported is {_OF_ENDPOINT[0]}")
    if retriever and retriever not in _RETRIEVERS:
        raise InvalidSecurity(
            f"{_RETRIEVER} is {retriever[:100]!r}: leave it out, only client credentials are supported"
        )
    if handler:
        return handler == _OF_UNSIGNED
    return not values.get(URL) and any(name.startswith(_UNSIGNED) for name in options)


def _endpoint(values: Mapping[str, str], options: Mapping[str, str], tls: Tls) -> ClientCredentials:
    url = values.get(URL, "")
    if not url:
        raise InvalidSecurity(f"sasl.mechanism is OAUTHBEARER, and {URL} is not set: tokens come from there")
    if not _is_of_page(url):
        raise InvalidSecurity(f"{URL} is no URL that begins with https:// or http://: set it to that of the endpoint")
    encodes = values.get(_ENCODES) or "false"
    if encodes.lower() not in ("true", "false"):
        raise InvalidSecurity(f"{_ENCODES} is {encodes[:50]!r}: set it to true or false")
    return ClientCredentials(
        url,
        _required(values, options, _CLIENT),
        _required(values, options, _SECRET),
        _either(values, options, _SCOPE),
        tls,
        encodes.lower() == "true",
    )


def _is_of_page(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0 and url.isascii()
    except ValueError:
        return False


def _either(values: Mapping[str, str], options: Mapping[str, str], names: tuple[str, str]) -> str | None:
    setting, option = names
    return values.get(setting) or options.get(option) or None


def _required(values: Mapping[str, str], options: Mapping[str, str], names: tuple[str, str]) -> str:
    found = _either(values, options, names)
    if found is None:
        setting, option = names
        raise InvalidSecurity(f"OAUTHBEARER needs {setting}, or the option {option} in sasl.jaas.config")
    return found


def _unsigned(options: Mapping[str, str]) -> UnsignedTokens:
    claims = {match["name"]: _claim(match, options[match[0]]) for match in map(_CLAIM.fullmatch, options) if match}
    principal = options.get("unsecuredLoginPrincipalClaimName") or "sub"
    if not claims.get(principal):
        raise InvalidSecurity(f"sasl.jaas.config lacks the option unsecuredLoginStringClaim_{principal}")
    return UnsignedTokens(MappingProxyType(claims), principal, _lifetime(options))


def _claim(match: re.Match[str], text: str) -> object:
    match match["kind"]:
        case "String":
            return text
        case "List":
            # Its first character stands between the entries.
            return [entry for entry in text[1:].split(text[0]) if entry] if text else []
    return _parsed(match[0], text)


def _lifetime(options: Mapping[str, str]) -> float:
    name = "unsecuredLoginLifetimeSeconds"
    return _parsed(name, options[name]) if name in options else UNSIGNED_SECONDS


def _refresh(values: Mapping[str, str]) -> Refresh:
    numbers = {}
    for name, (least, most) in _LIMITS.items():
        setting = f"sasl.login.refresh.{name}"
        if text := values.get(setting):
            number = numbers[name.replace(".", "_")] = _parsed(setting, text)
            if not least <= number <= most:
                raise InvalidSecurity(f"{setting} is {text[:50]!r}: set it to a number from {least:g} to {most:g}")
    return Refresh(**numbers)


def _parsed(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSecurity(f"{name} is {text[:50]!r}: set it to a number") from None
