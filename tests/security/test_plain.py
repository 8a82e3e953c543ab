"""PLAIN: the message of RFC 4616, and what a server refuses."""

from __future__ import annotations

import pytest

from transport.security import plain
from transport.security.errors import AuthenticationFailed
from transport.security.plain import Login


def test_the_example_of_the_rfc() -> None:
    exchange = plain.client(Login("tim", "tanstaaftanstaaf"))
    message = next(exchange)
    assert message == b"\0tim\0tanstaaftanstaaf"
    with pytest.raises(StopIteration):
        exchange.send(b"")
    assert plain.read(message) == Login("tim", "tanstaaftanstaaf")
    assert plain.read(b"tim\0tim\0tanstaaftanstaaf") == Login("tim", "tanstaaftanstaaf")


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (b"", "three parts"),
        (b"tim\0secret", "three parts"),
        (b"\0tim\0sec\0ret", "three parts"),
        (b"\0\0secret", "lacks"),
        (b"\0tim\0", "lacks"),
        (b"Ursel\0Kurt\0secret", "act as another user"),
        (b"\0tim\0\xff", "not UTF-8"),
    ],
)
def test_a_message_that_is_none_is_refused_without_showing_it(message: bytes, fault: str) -> None:
    with pytest.raises(AuthenticationFailed, match=fault) as caught:
        plain.read(message)
    assert "secret" not in str(caught.value)
