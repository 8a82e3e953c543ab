"""One controller process: its event queue, its place in the election, its office, and the rounds of each event."""

from __future__ import annotations
