"""What is seen of a controller: its logs, metrics, commit trace and state."""

from __future__ import annotations
