"""Where the rounds of a plan run: in this process, or on Spark. Both give every block the same steps."""

from __future__ import annotations
