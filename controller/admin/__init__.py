"""The administrator's side: clients of the active controller, and following and presenting moves."""

from __future__ import annotations
