"""Addresses of hosts as text: HOST:PORT, an IPv6 address in brackets (RFC 3986, 3.2.2), as Kafka and ZooKeeper have it.

The address may have a zone (RFC 4007, 11): `[fe80::1%eth0]:9092`.
"""

from __future__ import annotations

import re
from typing import Final

from transport.metadata import MAX_PORT, number_in

_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+(%\S+)?")

Address = tuple[str, int]
"""A host, by name or by address, and a TCP port."""


def address_text(host: str, port: int) -> str:
    """Return the text that `parse` parses."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str) -> Address:
    """Return the address in a text. Raises ValueError, which says what is valid."""
    host, port = split(text.strip())
    number = number_in(port)
    if not host or number is None or not 0 < number <= MAX_PORT:
        raise ValueError(f"{text.strip()!r:.200} is not HOST:PORT")
    if ":" in host and not text.strip().startswith("["):
        if not _IPV6.fullmatch(host):
            raise ValueError(f"{text.strip()!r:.200} is not HOST:PORT")
        raise ValueError(f"{text.strip()!r:.200} is not HOST:PORT: write an IPv6 address as [ADDRESS]:PORT")
    return host, number


def parse_list(text: str) -> list[Address]:
    """Return the addresses in a list that commas separate and may end. Raises ValueError for a bad one, or for none."""
    items = text.split(",")
    while len(items) > 1 and not items[-1].strip():
        items.pop()
    return [parse(item) for item in items]


def split(text: str) -> tuple[str, str]:
    """Return the host without its brackets, and the text behind the last colon; both may be anything."""
    host, _, port = text.rpartition(":")
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host, port
