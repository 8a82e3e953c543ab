"""`python -m klamm` and the script `klamm`: the command, which Ctrl-C ends quietly from its first import on."""

from __future__ import annotations

from klamm import interrupts


def main() -> None:
    """Run the command; never returns."""
    interrupts.take_over()
    from klamm.cli import main as command

    command()


if __name__ == "__main__":
    main()
