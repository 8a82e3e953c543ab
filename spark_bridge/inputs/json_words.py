"""The fault of a JSON document in words."""

from __future__ import annotations

from json import JSONDecodeError
from typing import Final

CUT_OFF: Final = "the file ends too early: write or copy it again"


def fault_of(error: JSONDecodeError) -> str:
    """Return what is wrong with a document, and what to do if only its beginning is there."""
    # A string has no line breaks: one without an end is on the last line.
    ends = error.msg.startswith("Unterminated string") or error.pos >= len(error.doc.rstrip())
    return CUT_OFF if ends else error.msg
