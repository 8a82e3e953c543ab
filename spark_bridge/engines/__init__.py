"""The engines that run the rounds of a plan: in this process, or on Spark. Both apply the same steps to each block."""

from __future__ import annotations
