"""The settings of security under Kafka's names, from a file of properties such as `client.properties`.

The same file is for both directions: what a process shows to servers, and what it asks of its clients. Settings that
are not about security are ignored, so that a file of Kafka's tools can be used as it is. No message shows a value of a
setting with a password.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from transport.metadata import SecurityProtocol
from transport.security.errors import InvalidSecurity
from transport.security.jaas import LoginModule, parse_jaas
from transport.security.key_stores import Store
from transport.security.plain import PLAIN, Login
from transport.security.principal import BY_DEFAULT, MappingRule, Principal, parse_mapping_rules, parse_principal
from transport.security.properties import read_properties
from transport.security.sasl import (
    CLIENT_MECHANISMS,
    MECHANISMS,
    OAUTHBEARER,
    CredentialOf,
    SaslLogin,
    SaslServer,
    nobody,
)
from transport.security.tls import VERSIONS, ClientAuth, Tls
from transport.settings import did_you_mean

_PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = "sasl.mechanism"
_ENABLED: Final = "sasl.enabled.mechanisms"
_JAAS: Final = "sasl.jaas.config"
_PLAIN_JAAS: Final = "plain.sasl.jaas.config"
_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
_CLIENT_AUTH: Final = "ssl.client.auth"
_VERSIONS: Final = "ssl.enabled.protocols"
_AUTHORIZER: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"
_ALLOW: Final = "allow.everyone.if.no.acl.found"

_NAMES: Final = frozenset(
    {
        *(_PROTOCOL, _MECHANISM, _ENABLED, _JAAS, _PLAIN_JAAS, _AUTHORIZER, _SUPER_USERS, _ALLOW),
        *(_IDENTIFICATION, _CLIENT_AUTH, _VERSIONS, "ssl.principal.mapping.rules"),
        *("ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.key.password"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain"),
        *("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password", "ssl.truststore.certificates"),
    }
)
_IGNORED: Final = (
    *("ssl.protocol", "ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
    *("ssl.secure.random.implementation", "ssl.engine.factory.class", "ssl.allow."),
    *("sasl.login.", "sasl.client.callback.handler.class", "sasl.server.", "sasl.kerberos.", "sasl.oauthbearer."),
    *("security.providers", "security.inter.broker.protocol", "sasl.mechanism."),
)
"""The beginnings of the names of settings that only Java has, or that other mechanisms need."""

_PREFIXES: Final = ("ssl.", "sasl.", "security.")

_AUTHORIZERS: Final = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
_BOOLEANS: Final = MappingProxyType({"true": True, "false": False})
_WITH_TLS: Final = frozenset({SecurityProtocol.SSL, SecurityProtocol.SASL_SSL})
_WITH_SASL: Final = frozenset({SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL})


@frozen
class AuthorizerSettings:
    """The permissions in effect: everybody may do everything, unless Kafka's ACLs are enabled."""

    is_enabled: bool = False
    super_users: frozenset[Principal] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


_NO_TLS: Final = Tls()
_NO_AUTHORIZER: Final = AuthorizerSettings()


@frozen
class Security:
    """The security of a process's connections."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: Tls = _NO_TLS
    login: SaslLogin | None = None
    """The credentials for logging in at servers; None for none."""

    mechanisms: tuple[str, ...] = ()
    """The mechanisms of SASL that clients may use."""

    passwords: Mapping[str, str] = field(factory=lambda: MappingProxyType({}), repr=False)
    """The passwords of clients that use PLAIN."""

    rules: Sequence[MappingRule] = BY_DEFAULT
    authorizer: AuthorizerSettings = _NO_AUTHORIZER

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in _WITH_TLS

    @property
    def has_sasl(self) -> bool:
        """Whether clients log in by SASL."""
        return self.protocol in _WITH_SASL

    def sasl_server(self, credential_of: CredentialOf = nobody) -> SaslServer | None:
        """Return what clients log in at, given the credentials of SCRAM; None without SASL."""
        return SaslServer(self.mechanisms, self.passwords, credential_of) if self.has_sasl else None


OPEN: Final = Security()
"""No TLS, no SASL, no ACLs."""


def read_security(path: Path) -> Security:
    """Return the security that a file of properties asks for. Raises InvalidSecurity, which names the file."""
    try:
        return security_of(read_properties(path))
    except InvalidSecurity as error:
        text = str(error)
        raise InvalidSecurity(text if text.startswith(str(path)) else f"{path}: {text}") from None


def security_of(properties: Mapping[str, str]) -> Security:
    """Return the security that properties ask for. Raises InvalidSecurity."""
    values = {name: value.strip() for name, value in properties.items()}
    _check_names(values)
    protocol = _protocol(values)
    has_sasl = protocol in _WITH_SASL
    mechanism = _mechanism(values) if has_sasl else None
    module = parse_jaas(_JAAS, values[_JAAS]) if has_sasl and values.get(_JAAS) else None
    login = _login(values, mechanism, module) if mechanism is not None else None
    return Security(
        protocol,
        _tls(values) if protocol in _WITH_TLS else _NO_TLS,
        login,
        _enabled(values, login) if has_sasl else (),
        MappingProxyType(_passwords(values, module)),
        parse_mapping_rules(values.get("ssl.principal.mapping.rules", "")),
        _authorizer(values),
    )


def _check_names(values: Mapping[str, str]) -> None:
    for name in sorted(values):
        is_ours = name in _NAMES or not name.startswith(_PREFIXES)
        if not is_ours and not any(
            name == known or (known.endswith(".") and name.startswith(known)) for known in _IGNORED
        ):
            if name == "ssl.cipher.suites":
                raise InvalidSecurity("ssl.cipher.suites has Java's names and is not supported: leave it out")
            raise InvalidSecurity(f"there is no setting {name}{did_you_mean(name, _NAMES)}")


def _protocol(values: Mapping[str, str]) -> SecurityProtocol:
    text = values.get(_PROTOCOL) or SecurityProtocol.PLAINTEXT.name
    try:
        return SecurityProtocol[text.upper()]
    except KeyError:
        raise _not_one_of(_PROTOCOL, text, SecurityProtocol.__members__) from None


# --- SASL -------------------------------------------------------------------------------------------------------


def _mechanism(values: Mapping[str, str]) -> str | None:
    """Return what a process logs in with; None for a server that only lets others log in."""
    mechanism = values.get(_MECHANISM)
    if not mechanism and values.get(_ENABLED):
        return None
    if not mechanism or mechanism not in CLIENT_MECHANISMS:
        raise _not_one_of(_MECHANISM, mechanism or "", CLIENT_MECHANISMS)
    return mechanism


def _login(values: Mapping[str, str], mechanism: str, module: LoginModule | None) -> SaslLogin:
    if module is not None and mechanism not in module.mechanisms:
        raise InvalidSecurity(f"the module of {_JAAS} is for {' and '.join(module.mechanisms)}, not for {mechanism}")
    if mechanism == OAUTHBEARER:
        # Other mechanisms need no client of HTTP.
        from transport.security.oauth_settings import tokens_of  # noqa: PLC0415

        options = {} if module is None else module.options
        return SaslLogin(mechanism, tokens_of(values, options, _tls_of_endpoint(values, options)))
    if module is None:
        raise InvalidSecurity(f"{_MECHANISM} is {mechanism}, and {_JAAS} is not set: it has the user and the password")
    user, password = module.options.get("username"), module.options.get("password")
    if not (user and password):
        raise InvalidSecurity(f"{_JAAS} lacks the username or the password")
    if module.options.get("tokenauth", "").lower() == "true":
        raise InvalidSecurity(f"{_JAAS} has tokenauth: delegation tokens are not supported, log in as a user")
    return SaslLogin(mechanism, Login(user, password))


def _enabled(values: Mapping[str, str], login: SaslLogin | None) -> tuple[str, ...]:
    text = values.get(_ENABLED)
    if not text:
        return (login.mechanism,) if login is not None and login.mechanism in MECHANISMS else ()
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in MECHANISMS:
            raise _not_one_of(_ENABLED, name, MECHANISMS)
    return names


def _passwords(values: Mapping[str, str], module: LoginModule | None) -> dict[str, str]:
    own = values.get(_PLAIN_JAAS)
    for_plain = parse_jaas(_PLAIN_JAAS, own) if own else module
    return for_plain.passwords if for_plain is not None and PLAIN in for_plain.mechanisms else {}


# --- TLS --------------------------------------------------------------------------------------------------------


def _tls(values: Mapping[str, str]) -> Tls:
    identification = values.get(_IDENTIFICATION, "https").lower()
    if identification not in ("https", ""):
        raise InvalidSecurity(f"{_IDENTIFICATION} is https, or empty for no check, not {identification!r:.50}")
    auth = values.get(_CLIENT_AUTH) or ClientAuth.NONE.value
    if auth.lower() not in (mode.value for mode in ClientAuth):
        raise _not_one_of(_CLIENT_AUTH, auth, [mode.value for mode in ClientAuth])
    return Tls(
        _store(values, "ssl.keystore", ("ssl.keystore.key", "ssl.keystore.certificate.chain")),
        _truststore(values),
        values.get("ssl.key.password"),
        bool(identification),
        ClientAuth(auth.lower()),
        _versions(values),
    )


def _tls_of_endpoint(values: Mapping[str, str], options: Mapping[str, str]) -> Tls:
    """Return the TLS to a token endpoint: that of its login module, as in Kafka, or else that of the brokers.

    The latter may be an authority of the cluster alone, so that the system's are trusted as well.
    """
    own = {name: value for name, value in options.items() if name.startswith("ssl.")}
    if own:
        return _tls(own)
    return Tls(truststore=_truststore(values), trusts_system=True)


def _truststore(values: Mapping[str, str]) -> Store | None:
    return _store(values, "ssl.truststore", ("ssl.truststore.certificates",))


def _store(values: Mapping[str, str], name: str, parts: Sequence[str]) -> Store | None:
    location, password = values.get(f"{name}.location"), values.get(f"{name}.password")
    texts = [values[part] for part in parts if values.get(part)]
    if not location and not texts:
        return None
    if location and texts:
        raise InvalidSecurity(f"{name}.location and {parts[0]} are both set: set one of them")
    if not location and len(texts) < len(parts):
        raise InvalidSecurity(f"{' and '.join(parts)} have to be set together")
    # What stands in one line of a file of properties has spaces for the ends of lines.
    text = "\n".join(texts) + "\n" if texts else None
    return Store(name, location or None, text, password, values.get(f"{name}.type") or None)


def _versions(values: Mapping[str, str]) -> tuple[str, ...]:
    text = values.get(_VERSIONS)
    names = tuple(name.strip() for name in text.split(",")) if text else VERSIONS
    for name in names:
        if name not in VERSIONS:
            raise _not_one_of(_VERSIONS, name, VERSIONS)
    return names


# --- ACLs -------------------------------------------------------------------------------------------------------


def _authorizer(values: Mapping[str, str]) -> AuthorizerSettings:
    name = values.get(_AUTHORIZER, "")
    if name and name not in _AUTHORIZERS:
        raise _not_one_of(_AUTHORIZER, name, _AUTHORIZERS)
    allow = values.get(_ALLOW) or "false"
    if allow.lower() not in _BOOLEANS:
        raise _not_one_of(_ALLOW, allow, _BOOLEANS)
    texts = [text for text in values.get(_SUPER_USERS, "").split(";") if text.strip()]
    try:
        users = frozenset(map(parse_principal, texts))
    except ValueError as error:
        raise InvalidSecurity(f"{_SUPER_USERS} lists principals, with semicolons between: {error}") from None
    return AuthorizerSettings(bool(name), users, _BOOLEANS[allow.lower()])


def _not_one_of(name: str, value: str, valid: Mapping[str, object] | Sequence[str]) -> InvalidSecurity:
    fault = f"is {value[:50]!r}" if value else "is not set"
    return InvalidSecurity(f"{name} {fault}: set it to one of {', '.join(valid)}")
