"""The corpus: the seeds that reach most together, which a short campaign runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("corpus.txt")

_WIDTH: Final = 80
_HEAD: Final = "# Seeds that reach most branches and pairs together. Draw them anew with: make simulate-corpus\n"


def read() -> tuple[int, ...]:
    """Return the seeds of the corpus."""
    lines = PATH.read_text(encoding="utf-8").splitlines()
    return tuple(int(seed) for line in lines if not line.startswith("#") for seed in line.split())


def write(seeds: Iterable[int]) -> None:
    """Replace the corpus."""
    rows = textwrap.wrap(" ".join(map(str, sorted(seeds))), _WIDTH)
    PATH.write_text("\n".join([_HEAD.strip(), *rows, ""]), encoding="utf-8")
