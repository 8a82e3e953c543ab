"""The files of a plan in a folder: each is written completely or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.outputs.reassignment import LIMIT, Ids, steps
from spark_bridge.outputs.rows import SCHEMA


def claim_folder(folder: Path) -> None:
    """Create the folder of a plan, so that no file of an earlier plan is mistaken for part of it.

    Raises:
        PlanError: The folder is not empty, or cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise PlanError(f"{folder} is not empty: name another folder for the plan, or empty this one")
    except OSError as error:
        raise PlanError(f"{folder}: {error.strerror}") from None


def write_plan(
    batches: Iterable[pa.RecordBatch], folder: Path, *, part: str = "", limit: int = LIMIT, ids: Ids | None = None
) -> tuple[Path, ...]:
    """Write the rows of a plan to a folder and return the files, by name.

    These are `plan.json` and `rollback.json`, or `plan-0001.json` and so on with the rollback of each under the same
    number, and `plan.parquet`. A plan that changes nothing has no JSON, because there is nothing to execute.

    Args:
        batches: Rows of `rows.SCHEMA`, read once.
        folder: The folder for the files; it exists.
        part: The part of the plan, if others write the rest; all file names contain it. It is named after its contents
            (the number of a block) and not after the writer, so the files do not depend on the writer, and writing
            them again does no harm.
        limit: The most bytes of each JSON file.
        ids: The ids of the cluster and of topics, as far as they are known.

    Raises:
        PlanError: A file cannot be written, or a partition does not fit in one.
    """
    try:
        with _all_or_none(folder) as scratch:
            suffix = f"-{part}" if part else ""
            with pq.ParquetWriter(scratch / f"plan{suffix}.parquet", SCHEMA) as parquet:
                count = 0
                for count, step in enumerate(steps(_noted(batches, parquet), limit, ids or Ids()), 1):
                    (scratch / f"plan{suffix}-{count:04}.json").write_bytes(step.plan)
                    (scratch / f"rollback{suffix}-{count:04}.json").write_bytes(step.rollback)
            if count == 1:
                for name in ("plan", "rollback"):
                    (scratch / f"{name}{suffix}-0001.json").rename(scratch / f"{name}{suffix}.json")
            names = sorted(path.name for path in scratch.iterdir())
    except OSError as error:
        raise PlanError(f"{folder}: {error.strerror or error}") from None
    return tuple(folder / name for name in names)


def _noted(batches: Iterable[pa.RecordBatch], parquet: pq.ParquetWriter) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        parquet.write_batch(batch)
        yield batch


@contextmanager
def _all_or_none(folder: Path) -> Iterator[Path]:
    """Yield a folder whose files get their names in `folder` only when all of them are written."""
    with TemporaryDirectory(prefix=".part-", dir=folder) as name:
        scratch = Path(name)
        yield scratch
        for path in sorted(scratch.iterdir()):
            path.replace(folder / path.name)
