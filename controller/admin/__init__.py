"""The administrator's side: clients of the active controller, and what they follow and show."""

from __future__ import annotations
