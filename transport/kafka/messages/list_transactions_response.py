"""ListTransactionsResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, INT64, STRING, At, Entity, Message, parse_versions


class TransactionState(Entity, frozen=True):
    transactional_id: Annotated[str, STRING, At("0+")] = ""
    producer_id: Annotated[int, INT64, At("0+")] = 0
    transaction_state: Annotated[str, STRING, At("0+")] = ""


class ListTransactionsResponse(Message, frozen=True):
    api_key = 66
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    unknown_state_filters: Annotated[tuple[str, ...], STRING, At("0+")] = ()
    transaction_states: Annotated[tuple[TransactionState, ...], At("0+")] = ()
