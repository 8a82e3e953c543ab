"""What a controller knows and how it decides, pure: values, tables and functions, no I/O and no clock."""

from __future__ import annotations
