"""The apis that one end of the wire knows: ours, and those that the author of a service adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from transport.messages import APIS, Api, Request

FIRST_OWN_KEY: Final = 10_000
"""Where the keys of a service's own apis begin: those below are Kafka's and ours, now and later."""


@frozen
class ApiTable:
    """A table of apis, by key and by request class."""

    by_key: Mapping[int, Api]
    by_request: Mapping[type[Request[Any]], Api]

    @classmethod
    def of(cls, own: Iterable[Api]) -> ApiTable:
        """Return the table of our apis and a service's own.

        Raises ValueError if one of them has a key below 10,000, or a key or a request class that is taken.
        """
        by_key = {api.key: api for api in APIS}
        by_request = {api.request: api for api in APIS}
        for api in own:
            if api.key < FIRST_OWN_KEY:
                raise ValueError(f"the keys of own apis begin at {FIRST_OWN_KEY}, and {api.name} has {api.key}")
            if api.key in by_key or api.request in by_request:
                raise ValueError(f"another api has the key {api.key} or the request {api.request.__name__}")
            by_key[api.key] = by_request[api.request] = api
        return cls(MappingProxyType(by_key), MappingProxyType(by_request))


OURS: Final = ApiTable.of(())
