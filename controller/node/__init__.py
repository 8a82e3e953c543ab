"""One controller process: its event queue, its elections, its office, and the rounds of each event."""

from __future__ import annotations
