"""The apis that one end of the wire knows: ours, and those that the author of a service adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from transport.messages import APIS, Api, Request

FIRST_OWN_KEY: Final = 10_000
"""The first key for apis of a service. Smaller keys are reserved for Kafka's apis and ours."""


@frozen
class ApiTable:
    """A table of apis by key and by request class."""

    by_key: Mapping[int, Api]
    by_request: Mapping[type[Request[Any]], Api]

    @classmethod
    def of(cls, own: Iterable[Api]) -> ApiTable:
        """Return the table of our apis and those of a service.

        Raises ValueError if one of the latter has a key below 10,000, or a duplicate key or request class.
        """
        by_key = {api.key: api for api in APIS}
        by_request = {api.request: api for api in APIS}
        for api in own:
            if api.key < FIRST_OWN_KEY:
                raise ValueError(f"{api.name} has the key {api.key}: keys of own apis start at {FIRST_OWN_KEY}")
            if api.key in by_key or api.request in by_request:
                raise ValueError(f"another api has the key {api.key} or the request {api.request.__name__}")
            by_key[api.key] = by_request[api.request] = api
        return cls(MappingProxyType(by_key), MappingProxyType(by_request))


OURS: Final = ApiTable.of(())
