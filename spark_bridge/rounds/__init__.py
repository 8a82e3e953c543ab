"""The rounds that make a plan: steps over all blocks, chosen here by their sums. Nothing here sees a partition."""

from __future__ import annotations
