"""`python -m controller.cli` is `klamm`."""

from __future__ import annotations

from controller.cli import main

main()
