"""What planning raises."""

from __future__ import annotations


class PlanError(Exception):
    """There is no plan: its text is one line that names what is wrong and the cure."""
