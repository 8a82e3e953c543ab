"""`klamm plan`: plans for large moves, and their reports. Planning itself moves nothing."""

from __future__ import annotations
