"""The table of apis, by key and by request class."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from transport.messages import APIS, Api, Request

API_BY_KEY: Final = MappingProxyType({api.key: api for api in APIS})
API_BY_REQUEST: Final[MappingProxyType[type[Request[Any]], Api]] = MappingProxyType({api.request: api for api in APIS})
