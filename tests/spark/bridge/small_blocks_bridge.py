"""The real bridge with blocks so small that a cluster of thousands of partitions has several."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_bridge.__main__ import run_plan
from spark_bridge.model import block
from spark_bridge.process.serving import serve

if __name__ == "__main__":
    block.BLOCK_SIZE = 1_000
    serve(run_plan, Path(sys.argv[1]))
