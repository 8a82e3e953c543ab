"""The planning algorithm: pure steps over the arrays of one block, and broker-sized arithmetic for the driver."""

from __future__ import annotations
