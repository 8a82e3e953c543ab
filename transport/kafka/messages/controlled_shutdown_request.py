"""ControlledShutdownRequest in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, INT64, At, Message, parse_versions


class ControlledShutdownRequest(Message, frozen=True):
    api_key = 7
    versions = parse_versions("0-3")
    flexible = parse_versions("3+")

    broker_id: Annotated[int, INT32, At("0+")] = 0
    broker_epoch: Annotated[int, INT64, At("2+", ignorable=True)] = -1
