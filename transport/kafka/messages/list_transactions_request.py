"""ListTransactionsRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT64, STRING, At, Message, parse_versions


class ListTransactionsRequest(Message, frozen=True):
    api_key = 66
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    state_filters: Annotated[tuple[str, ...], STRING, At("0+")] = ()
    producer_id_filters: Annotated[tuple[int, ...], INT64, At("0+")] = ()
    duration_filter: Annotated[int, INT64, At("1+")] = -1
    transactional_id_pattern: Annotated[str | None, STRING, At("2+", nullable="2+")] = None
