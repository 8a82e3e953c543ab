"""`launcher.py TREE FLAG ARGUMENTS...` runs the command `klamm` of the source tree TREE, whichever is installed.

While the file FLAG exists, a broker fails to lead the partitions of the topic that the file names. It runs with both
trees, so it imports nothing of either before it knows which one is meant.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    """Run the command. Exits with a message if another tree's `klamm` is found first."""
    tree, flag = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    sys.path.insert(0, str(tree))
    where = Path(str(import_module("klamm").__file__)).resolve()
    if tree not in where.parents:
        sys.exit(f"klamm was imported from {where}, not from {tree}")
    sys.argv = ["klamm", *sys.argv[3:]]
    if sys.argv[1:3] == ["broker", "run"]:
        _let_leading_fail(flag)
    import_module("klamm.__main__").main()


def _let_leading_fail(flag: Path) -> None:
    """Let the reference service raise when it is ordered to lead a partition of the topic in the file."""
    service: Any = import_module("broker.reference.service").ReferenceService
    lead = service.become_leader

    def failing() -> str | None:
        return flag.read_text(encoding="utf-8") if flag.exists() else None

    # The trees may differ in the parameters that follow.
    async def become_leader(self: object, state: Any, *args: object, **options: object) -> None:  # noqa: ANN401
        if state.topic == failing():
            raise RuntimeError(f"broker cannot lead {state.tp}, as a fault")
        await lead(self, state, *args, **options)

    service.become_leader = become_leader


if __name__ == "__main__":
    main()
