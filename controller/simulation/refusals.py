"""What a simulated administrator makes of an answer that lists outcomes."""

from __future__ import annotations

from collections.abc import Iterable

from transport.errors import ApiError, ErrorCode
from transport.messages import PartitionError, TopicError


def require_done(results: Iterable[TopicError | PartitionError]) -> None:
    """Raise ApiError for the first refusal."""
    for result in results:
        if result.error is not ErrorCode.NONE:
            raise ApiError(result.error, result.message)
