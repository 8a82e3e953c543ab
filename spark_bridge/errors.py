"""The errors of planning."""

from __future__ import annotations


class PlanError(Exception):
    """Planning failed; the text is one line that says what is wrong and what to do."""
