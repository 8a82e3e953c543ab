"""Principals, from text and from certificates, written as Kafka writes them."""

from __future__ import annotations

import datetime as dt
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import NameOID

from transport.security.distinguished_name import subject_of
from transport.security.errors import AuthenticationFailed, InvalidSecurity
from transport.security.principal import Principal, mapped_principal, parse_mapping_rules, parse_principal

Part = list[tuple[x509.ObjectIdentifier, str]]

WITH_SPECIAL_CHARACTERS: Final[list[Part]] = [
    [(NameOID.COUNTRY_NAME, "DE")],
    [(NameOID.STATE_OR_PROVINCE_NAME, "Berlin")],
    [(NameOID.LOCALITY_NAME, "B")],
    [(NameOID.ORGANIZATION_NAME, "Example, Inc.")],
    [(NameOID.ORGANIZATIONAL_UNIT_NAME, 'a+b="c"<d>;#e\\')],
    [(NameOID.COMMON_NAME, " klamm  ")],
]
WITH_RARE_TYPES: Final[list[Part]] = [
    [(NameOID.DOMAIN_COMPONENT, "example")],
    [(NameOID.USER_ID, "u1"), (NameOID.COMMON_NAME, "zwei ä")],
    [(NameOID.EMAIL_ADDRESS, "a@example.org")],
    [(NameOID.SERIAL_NUMBER, "77")],
    [(NameOID.TITLE, "Dr")],
    [(NameOID.STREET_ADDRESS, "Str 1")],
]


def certificate(name: list[Part]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.RelativeDistinguishedName([x509.NameAttribute(*pair) for pair in part]) for part in name])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 2**150 + 7)
    made = builder.not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    made = made.not_valid_after(dt.datetime(2040, 1, 1, tzinfo=dt.UTC))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # What X500Principal.getName() of Java 17 returns for the same certificates.
        (WITH_SPECIAL_CHARACTERS, r"CN=\ klamm\ \ ,OU=a\+b\=\"c\"\<d\>\;\#e\\,O=Example\, Inc.,L=B,ST=Berlin,C=DE"),
        (
            WITH_RARE_TYPES,
            (
                "STREET=Str 1,2.5.4.12=#0c024472,2.5.4.5=#13023737,"
                "1.2.840.113549.1.9.1=#160d61406578616d706c652e6f7267,CN=zwei ä+UID=u1,DC=example"
            ),
        ),
        ([[(NameOID.COMMON_NAME, "#x y\nz")]], "CN=\\#x y\nz"),
    ],
)
def test_the_subject_of_a_certificate_is_written_as_by_java(name: list[Part], expected: str) -> None:
    assert subject_of(certificate(name)) == expected


@pytest.mark.parametrize("cut", [0, 1, 2, 30, 100])
def test_what_is_no_certificate_is_refused(cut: int) -> None:
    with pytest.raises(AuthenticationFailed, match="no subject that can be read"):
        subject_of(certificate(WITH_RARE_TYPES)[:cut])


def test_an_empty_subject_is_nobody() -> None:
    with pytest.raises(AuthenticationFailed, match="empty subject"):
        subject_of(certificate([]))


DN: Final = "CN=Klamm,OU=Ops,O=Example,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", DN),
        ("DEFAULT", DN),
        ("RULE:^CN=([^,]+),.*$/$1/", "Klamm"),
        ("RULE:CN=([^,]+),.*/$1/L", "klamm"),
        ("RULE:CN=([^,]+),OU=([^,]+),.*/$2@$1-$/U", "OPS@KLAMM-$"),
        ("RULE:CN=x.*/no/, RULE:^CN=(.*?),.*/u\\/$1/L,DEFAULT", "u/klamm"),
        ("RULE:CN=x.*/no/ ,DEFAULT", DN),
    ],
)
def test_rules_make_a_user_of_a_distinguished_name(rules: str, name: str) -> None:
    assert mapped_principal(parse_mapping_rules(rules), DN) == Principal("User", name)


def test_a_name_that_no_rule_matches_is_refused() -> None:
    # Kafka's rules match the whole of the name.
    rules = parse_mapping_rules("RULE:CN=Klamm/x/")
    with pytest.raises(AuthenticationFailed, match=r"no rule of ssl\.principal\.mapping\.rules matches 'CN=Klamm,OU"):
        mapped_principal(rules, DN)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ("RULE:x", "'RULE:x' is not a rule"),
        ("DEFAULT RULE:x/y/", "is not a rule"),
        ("RULE:(/x/", "the pattern '\\(' is not valid"),
        ("RULE:(a)/$2/", "refers to a group"),
    ],
)
def test_rules_that_are_none_are_refused(rules: str, fault: str) -> None:
    with pytest.raises(InvalidSecurity, match=fault):
        parse_mapping_rules(rules)


def test_a_principal_is_read_and_written() -> None:
    for text in ("User:alice", "User:CN=a:b,O=c", "Group:ops"):
        assert str(parse_principal(f" {text} ")) == text
    for text in ("alice", ":alice", "User:", ""):
        with pytest.raises(ValueError, match="TYPE:NAME"):
            parse_principal(text)
