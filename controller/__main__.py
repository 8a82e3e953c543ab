"""`python -m controller` and the script `klamm`: the command, which Ctrl-C ends quietly from its first import on."""

from __future__ import annotations

from controller import interrupts


def main() -> None:
    """Run the command; never returns."""
    interrupts.take_over()
    from controller.cli import main as klamm

    klamm()


if __name__ == "__main__":
    main()
