"""The places where a controller can be observed from: what observers and instruments are shown, and when."""

from __future__ import annotations
