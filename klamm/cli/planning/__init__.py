"""`klamm plan`: plans for big moves, and what they change; nothing is moved by planning."""

from __future__ import annotations
