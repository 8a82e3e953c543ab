"""Addresses of hosts as text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from transport.addresses import Address, address_text, parse, parse_list
from transport.metadata import MAX_PORT

HOSTS = st.one_of(
    st.from_regex(r"[a-z][a-z0-9.-]{0,60}", fullmatch=True),
    st.ip_addresses().map(str),
    st.ip_addresses(v=6).map(lambda address: f"{address}%eth0"),
)


@given(HOSTS, st.integers(1, MAX_PORT))
def test_what_is_written_is_read_again(host: str, port: int) -> None:
    assert parse(address_text(host, port)) == (host, port)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 , b:2 ", [("a", 1), ("b", 2)]),
        ("a:1,", [("a", 1)]),
        ("a:1, ,", [("a", 1)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[fe80::1%eth0]:9092,127.0.0.1:1", [("fe80::1%eth0", 9092), ("127.0.0.1", 1)]),
    ],
)
def test_a_list_separates_addresses_by_commas(text: str, found: list[Address]) -> None:
    assert parse_list(text) == found


@pytest.mark.parametrize(
    "text", ["", ",", "a", ":1", "a:", "a:0", "a:65536", "a:01", "a:x", "a:1,,b:1", "[::1]", "[]:1", "http://a:1"]
)
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_list(text)


def test_an_ipv6_address_without_brackets_could_end_anywhere() -> None:
    with pytest.raises(ValueError, match=r"'::1:9092' is not HOST:PORT: write an IPv6 address as \[ADDRESS\]:PORT"):
        parse("::1:9092")
