"""Settings of security, from files as Kafka's tools have them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from transport.metadata import SecurityProtocol
from transport.security.errors import InvalidSecurity
from transport.security.jaas import parse_jaas
from transport.security.key_stores import Store
from transport.security.plain import Login
from transport.security.principal import Principal
from transport.security.properties import parse_properties
from transport.security.settings import OPEN, AuthorizerSettings, Security, read_security, security_of
from transport.security.tls import ClientAuth, Tls

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM_LOGIN: Final = f'{SCRAM_MODULE} required username="klamm" password="klamm-secret";'
WITH_SCRAM: Final = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": SCRAM_LOGIN,
}


def test_nothing_asks_for_nothing() -> None:
    assert security_of({}) == OPEN
    assert security_of({"bootstrap.servers": "one:9092", "retries": "3"}) == OPEN
    assert not OPEN.has_tls
    assert OPEN.sasl_server() is None


def test_a_client_with_all_settings(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# a client\n"
        "security.protocol = SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '    username="klamm" \\\n'
        '    password="klamm-secret";\n'
        "ssl.keystore.location=/etc/klamm/key.p12\n"
        "ssl.keystore.password=klamm-secret\n"
        "ssl.keystore.type=PKCS12\n"
        "ssl.key.password=klamm-secret\n"
        "ssl.truststore.location=/etc/klamm/ca.pem\n"
        "ssl.truststore.type=PEM\n"
        "ssl.endpoint.identification.algorithm=\n"
        "ssl.enabled.protocols=TLSv1.3\n"
        "ssl.protocol=TLSv1.3\n"
        "sasl.login.callback.handler.class=x\n"
    )
    found = read_security(file)
    assert found.protocol is SecurityProtocol.SASL_SSL
    assert found.has_tls
    assert found.has_sasl
    assert found.tls == Tls(
        Store("ssl.keystore", "/etc/klamm/key.p12", password="klamm-secret", type="PKCS12"),  # noqa: S106
        Store("ssl.truststore", "/etc/klamm/ca.pem", type="PEM"),
        "klamm-secret",
        verify_hostname=False,
        versions=("TLSv1.3",),
    )
    assert found.login is not None
    assert (found.login.mechanism, found.login.login) == ("SCRAM-SHA-512", Login("klamm", "klamm-secret"))
    assert "klamm-secret" not in repr(found)


def test_a_server_with_all_settings() -> None:
    users = f'{PLAIN_MODULE} required username="klamm" password="klamm-secret" user_alice="alice-secret" user_b=b;'
    found = security_of(
        {
            "security.protocol": "sasl_ssl",
            "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256",
            "plain.sasl.jaas.config": users,
            "ssl.client.auth": "REQUIRED",
            "ssl.keystore.key": "a key",
            "ssl.keystore.certificate.chain": "certificates",
            "ssl.principal.mapping.rules": "RULE:CN=(.*?),.*/$1/L,DEFAULT",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:klamm; User:CN=a,O=b;",
            "allow.everyone.if.no.acl.found": "TRUE",
        }
    )
    server = found.sasl_server()
    assert server is not None
    assert server.mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert server.passwords == {"alice": "alice-secret", "b": "b"}
    assert found.login is None
    assert found.tls.client_auth is ClientAuth.REQUIRED
    assert found.tls.keystore == Store("ssl.keystore", text="a key\ncertificates\n")
    assert len(found.rules) == 2
    users_above = frozenset({Principal("User", "klamm"), Principal("User", "CN=a,O=b")})
    assert found.authorizer == AuthorizerSettings(
        is_enabled=True, super_users=users_above, allow_everyone_if_no_acl_found=True
    )
    assert "secret" not in repr(found)


def test_what_a_server_offers_is_what_it_logs_in_with_if_nothing_else_is_said() -> None:
    login = f'{PLAIN_MODULE} required username="klamm" password="klamm-secret" user_klamm="klamm-secret";'
    plain = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    found = security_of(plain)
    assert found.mechanisms == ("PLAIN",)
    assert found.passwords == {"klamm": "klamm-secret"}


def test_what_a_protocol_does_not_use_is_not_looked_at() -> None:
    settings = {"sasl.mechanism": "GSSAPI", "ssl.client.auth": "sometimes", "security.protocol": "PLAINTEXT"}
    assert security_of(settings) == Security()


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS': set it to one of PLAINTEXT, SSL, SASL_PLAINTEXT, "),
        ({"security.protocl": "SSL"}, "there is no setting security.protocl: did you mean security.protocol?"),
        ({"ssl.cipher.suites": "x"}, "ssl.cipher.suites has Java's names and is not supported: leave it out"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is not set: set it to one of PLAIN, SCRAM-SHA-256, SCRAM-"),
        (WITH_SCRAM | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is 'GSSAPI': set it to one of PLAIN, "),
        (
            {**WITH_SCRAM, "sasl.jaas.config": ""},
            "sasl.mechanism is SCRAM-SHA-512, and sasl.jaas.config is not set: it has the user and the password",
        ),
        (
            {**WITH_SCRAM, "sasl.mechanism": "PLAIN"},
            "the module of sasl.jaas.config is for SCRAM-SHA-256 and SCRAM-SHA-512, not for PLAIN",
        ),
        (
            {**WITH_SCRAM, "sasl.jaas.config": f'{SCRAM_MODULE} required password="klamm-secret";'},
            "sasl.jaas.config lacks the username or the password",
        ),
        (
            {**WITH_SCRAM, "sasl.jaas.config": SCRAM_LOGIN.replace(";", ' tokenauth="true";')},
            "sasl.jaas.config has tokenauth: delegation tokens are not supported",
        ),
        (WITH_SCRAM | {"sasl.enabled.mechanisms": "PLAIN,X"}, "sasl.enabled.mechanisms is 'X': set it to one of"),
        (WITH_SCRAM | {"ssl.client.auth": "maybe"}, "ssl.client.auth is 'maybe': set it to one of none, requested, "),
        (
            WITH_SCRAM | {"ssl.endpoint.identification.algorithm": "ldaps"},
            "ssl.endpoint.identification.algorithm is https, or empty for no check, not 'ldaps'",
        ),
        (WITH_SCRAM | {"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols is 'TLSv1.1': set it to one of TL"),
        (
            WITH_SCRAM | {"ssl.keystore.key": "k"},
            "ssl.keystore.key and ssl.keystore.certificate.chain have to be set together",
        ),
        (
            WITH_SCRAM | {"ssl.truststore.location": "x", "ssl.truststore.certificates": "y"},
            "ssl.truststore.location and ssl.truststore.certificates are both set: set one of them",
        ),
        ({"authorizer.class.name": "mine.Own"}, "authorizer.class.name is 'mine.Own': set it to one of kafka.security"),
        ({"super.users": "alice"}, "super.users lists principals, with semicolons between: a principal is TYPE:NAME"),
        (
            {"allow.everyone.if.no.acl.found": "1"},
            "allow.everyone.if.no.acl.found is '1': set it to one of true",
        ),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules: 'RULE:x' is not a rule"),
    ],
)
def test_what_cannot_be_used_is_told_with_what_to_do(settings: dict[str, str], fault: str) -> None:
    with pytest.raises(InvalidSecurity) as caught:
        security_of(settings)
    assert str(caught.value).startswith(fault)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "has to end with a semicolon"),
        (SCRAM_LOGIN[:-1], "has to end with a semicolon"),
        (SCRAM_LOGIN[:-2], "has a quote without its end"),
        (f'{SCRAM_MODULE} username="klamm" password="the-secret";', "has to be followed by a flag"),
        ('com.example.Login required username="klamm";', "the module 'com.example.Login' is none of org"),
        (f'{SCRAM_MODULE} required username "klamm" "the-secret";', "option 1 is not NAME=VALUE"),
        (f'{SCRAM_MODULE} required username="klamm" password=;', "option 2 is not NAME=VALUE"),
        (f'{SCRAM_MODULE} required a="b"; {SCRAM_MODULE} required c="the-secret";', "option 2 is not NAME=VALUE"),
    ],
)
def test_a_login_module_that_is_none_is_refused_without_showing_it(text: str, fault: str) -> None:
    with pytest.raises(InvalidSecurity) as caught:
        parse_jaas("sasl.jaas.config", text)
    assert fault in str(caught.value)
    assert "the-secret" not in str(caught.value)


def test_options_of_a_login_module_may_be_quoted() -> None:
    text = f'{PLAIN_MODULE} Required a=b c=\'d "e\' f="g\\"h;\\\\" i-j.k=l ;'
    assert parse_jaas("x", text).options == {"a": "b", "c": 'd "e', "f": 'g"h;\\', "i-j.k": "l"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    with pytest.raises(InvalidSecurity, match=f"^{file}: No such file or directory$"):
        read_security(file)
    file.write_text("security.protocol=x")
    with pytest.raises(InvalidSecurity, match=f"^{file}: security.protocol is 'x'"):
        read_security(file)


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "# comment \\\n! another\r\n\n  a=1\n b : 2\nc 3\nd\\ e\\==\\t4 \\u00e4\\q\n"
        "f=one\\\n   two\\\\\ng\nh=\\\n#i\na=last\nj=k=l\nm=end\\"
    )
    assert parse_properties(text) == {
        "a": "last",
        "b": "2",
        "c": "3",
        "d e=": "\t4 äq",
        "f": "onetwo\\",
        "g": "",
        "h": "#i",
        "j": "k=l",
        "m": "end",
    }
