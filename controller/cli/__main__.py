"""`python -m controller.cli` is `klamm`."""

from controller.cli import main

main()
