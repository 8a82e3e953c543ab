"""`python -m controller.cli` is `klamm`."""

from __future__ import annotations

from controller.__main__ import main

main()
