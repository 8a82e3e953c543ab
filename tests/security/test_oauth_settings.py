"""The settings of OAUTHBEARER under Kafka's names."""

from __future__ import annotations

from typing import Final

import pytest

from transport.network import TcpNetwork
from transport.security.errors import InvalidSecurity
from transport.security.key_stores import Store
from transport.security.settings import security_of
from transport.security.tls import Tls
from transport.security.token_endpoint import ClientCredentials
from transport.security.tokens import Refresh, Tokens, UnsignedTokens
from transport.wire.secured import secured

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
MODULE: Final = f"{PACKAGE}.OAuthBearerLoginModule"
UNSIGNED: Final = f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
URL: Final = "https://idp.example.com/oauth2/token"
OPTIONS: Final = 'clientId="klamm" clientSecret="klamm-secret"'
OAUTH: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": f"{MODULE} required {OPTIONS};",
    "sasl.oauthbearer.token.endpoint.url": URL,
}
ENDPOINT_TLS: Final = Tls(trusts_system=True)


def tokens_of(settings: dict[str, str]) -> Tokens:
    login = security_of(settings).login
    assert login is not None
    assert isinstance(login.login, Tokens)
    return login.login


@pytest.mark.parametrize("handler", ["", f"{PACKAGE}.", f"{PACKAGE}.secured."])
def test_client_credentials_as_options_of_the_module(handler: str) -> None:
    named = {"sasl.login.callback.handler.class": f"{handler}OAuthBearerLoginCallbackHandler"} if handler else {}
    module = f'{MODULE} required {OPTIONS} scope="kafka" extension_logicalCluster="lkc-1" ;'
    tokens = tokens_of(OAUTH | named | {"sasl.jaas.config": module})
    assert tokens.source == ClientCredentials(URL, "klamm", "klamm-secret", "kafka", ENDPOINT_TLS)
    assert (tokens.user, tokens.refresh, dict(tokens.extensions)) == ("klamm", Refresh(), {"logicalCluster": "lkc-1"})
    assert "klamm-secret" not in f"{tokens!r}{security_of(OAUTH)!r}"


def test_client_credentials_as_settings_come_first() -> None:
    tokens = tokens_of(
        OAUTH
        | {
            "sasl.oauthbearer.client.credentials.client.id": "newer",
            "sasl.oauthbearer.client.credentials.client.secret": "newer-secret",
            "sasl.oauthbearer.scope": "all",
            "sasl.oauthbearer.header.urlencode": "true",
            "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.ClientCredentialsJwtRetriever",
            "sasl.login.refresh.window.factor": "0.5",
            "sasl.login.refresh.window.jitter": "0",
            "sasl.login.refresh.min.period.seconds": "10",
            "sasl.login.refresh.buffer.seconds": "20",
            "sasl.login.connect.timeout.ms": "100",
        }
    )
    assert tokens.source == ClientCredentials(URL, "newer", "newer-secret", "all", ENDPOINT_TLS, encodes_header=True)
    assert tokens.refresh == Refresh(0.5, 0, 10, 20)


def test_the_module_may_be_left_out_with_credentials_as_settings() -> None:
    settings = {
        "sasl.jaas.config": "",
        "sasl.oauthbearer.client.credentials.client.id": "newer",
        "sasl.oauthbearer.client.credentials.client.secret": "newer-secret",
    }
    assert tokens_of(OAUTH | settings).user == "newer"


def test_the_authorities_of_the_endpoint() -> None:
    """Those of the module, as in Kafka; or else the system's and those of the cluster."""
    of_cluster = OAUTH | {"ssl.truststore.location": "/etc/ca.pem"}
    source = tokens_of(of_cluster).source
    assert isinstance(source, ClientCredentials)
    assert source.tls == Tls(truststore=Store("ssl.truststore", "/etc/ca.pem"), trusts_system=True)
    module = f'{MODULE} required {OPTIONS} ssl.truststore.location="/etc/idp.pem" ssl.keystore.location="/etc/me.pem";'
    source = tokens_of(of_cluster | {"sasl.jaas.config": module}).source
    assert isinstance(source, ClientCredentials)
    assert source.tls == Tls(Store("ssl.keystore", "/etc/me.pem"), Store("ssl.truststore", "/etc/idp.pem"))


@pytest.mark.parametrize("handler", ["", UNSIGNED])
def test_tokens_without_a_signature(handler: str) -> None:
    options = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="3"'
        ' unsecuredLoginListClaim_groups="|a|b" unsecuredLoginLifetimeSeconds="20"'
    )
    settings = {"sasl.jaas.config": f"{MODULE} required {options};", "sasl.oauthbearer.token.endpoint.url": ""}
    named = {"sasl.login.callback.handler.class": handler} if handler else {}
    tokens = tokens_of(OAUTH | settings | named)
    assert isinstance(tokens.source, UnsignedTokens)
    assert tokens.source.claims == {"sub": "alice", "level": 3, "groups": ["a", "b"]}
    assert (tokens.user, tokens.source.lifetime_seconds) == ("alice", 20)
    other = 'unsecuredLoginPrincipalClaimName="me" unsecuredLoginStringClaim_me="bob"'
    tokens = tokens_of(OAUTH | settings | named | {"sasl.jaas.config": f"{MODULE} required {other};"})
    assert tokens.user == "bob"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"sasl.oauthbearer.token.endpoint.url": ""},
            "sasl.mechanism is OAUTHBEARER, and sasl.oauthbearer.token.endpoint.url is not set: tokens come from there",
        ),
        ({"sasl.oauthbearer.token.endpoint.url": "idp:443"}, "sasl.oauthbearer.token.endpoint.url is no URL that beg"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///t"}, "sasl.oauthbearer.token.endpoint.url is no URL that b"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://h:x/"}, "sasl.oauthbearer.token.endpoint.url is no URL tha"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://[x/"}, "sasl.oauthbearer.token.endpoint.url is no URL that"),
        (
            {"sasl.jaas.config": f"{MODULE} required clientId=klamm;"},
            "OAUTHBEARER needs sasl.oauthbearer.client.credentials.client.secret, or the option clientSecret in",
        ),
        (
            {"sasl.jaas.config": ""},
            "OAUTHBEARER needs sasl.oauthbearer.client.credentials.client.id, or the option clientId in sasl.jaas",
        ),
        (
            {"sasl.login.callback.handler.class": "com.example.Own"},
            "sasl.login.callback.handler.class is 'com.example.Own': the only one that is supported is org.apache",
        ),
        (
            {"sasl.login.callback.handler.class": UNSIGNED},
            "sasl.jaas.config lacks the option unsecuredLoginStringClaim_sub",
        ),
        (
            {"sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"},
            f"sasl.oauthbearer.jwt.retriever.class is '{PACKAGE}.JwtBearerJwtRetriever': leave it out, only client c",
        ),
        ({"sasl.oauthbearer.header.urlencode": "yes"}, "sasl.oauthbearer.header.urlencode is 'yes': set it to true or"),
        (
            {"sasl.login.refresh.window.factor": "2"},
            "sasl.login.refresh.window.factor is '2': set it to a number from 0",
        ),
        (
            {"sasl.login.refresh.buffer.seconds": "nan"},
            "sasl.login.refresh.buffer.seconds is 'nan': set it to a number",
        ),
        (
            {"sasl.login.refresh.min.period.seconds": "x"},
            "sasl.login.refresh.min.period.seconds is 'x': set it to a nu",
        ),
        (
            {"sasl.mechanism": "SCRAM-SHA-256"},
            "the module of sasl.jaas.config is for OAUTHBEARER, not for SCRAM-SHA-256",
        ),
        (
            {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"},
            "sasl.mechanism is 'GSSAPI': set it to one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"},
            "sasl.jaas.config: the mechanism GSSAPI (Kerberos) is not supported: use one of PLAIN, SCRAM-SHA-256, ",
        ),
        (
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
            },
            "sasl.mechanism is 'AWS_MSK_IAM': set it to one of PLAIN",
        ),
    ],
)
def test_what_cannot_be_used_is_told_with_what_to_do(changes: dict[str, str], fault: str) -> None:
    with pytest.raises(InvalidSecurity) as caught:
        security_of(OAUTH | changes)
    assert str(caught.value).startswith(fault)
    assert "secret" not in str(caught.value).replace("client.secret", "")
    assert "\n" not in str(caught.value)


def test_a_server_offers_other_mechanisms() -> None:
    alone = security_of(OAUTH)
    with pytest.raises(InvalidSecurity, match=r"^OAUTHBEARER is for logins elsewhere: set sasl.enabled.mechanisms for"):
        secured(TcpNetwork(), alone)
    secured(TcpNetwork(), alone, serves=False)
    secured(TcpNetwork(), security_of(OAUTH | {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}))
