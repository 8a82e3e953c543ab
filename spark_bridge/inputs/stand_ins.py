"""Stand-ins in this process for inputs that only Spark can reach.

This process detects a file's format and checks its header and columns. A stand-in has only these: the first lines of a
table of text, or the columns of a file of Parquet. Documents and tables of brokers are read in this process in any
case, and are copied as a whole. Only DataFrames are used, so this works through Spark Connect, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyarrow import parquet as pq
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812 (the name that all of PySpark's documentation uses)
)
from pyspark.sql.pandas.types import to_arrow_schema

from spark_bridge.errors import PlanError
from spark_bridge.failures import of_java
from spark_bridge.inputs.files import BROKERS_FILE
from spark_bridge.inputs.formats import Format, format_of
from spark_bridge.inputs.sources import Url, file_url

_HEAD_LINES: Final = 50
_HEAD_OF_LINE: Final = 64 << 10
_PIECE: Final = 32 << 20
"""The number of bytes of a file that are fetched at a time."""

_MARKS: Final = ("_delta_log", ".hoodie", "metadata")
"""Folders that mark a table with a log of its current files."""

_REFUSALS: Final = (PySparkException, Py4JJavaError)
"""The errors of a Spark that cannot read a file: its own, and Java's if it has none of its own."""


def _said(error: PySparkException | Py4JJavaError) -> str:
    """Return the first line of an error."""
    text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    return of_java(str(text))


class StandIns:
    """The stand-ins of inputs, in a folder of this process.

    Args:
        spark: The session that reads the inputs.
        folder: The folder of stand-ins, created with the first one.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self._folder = folder
        self._urls: dict[Path, Url] = {}

    def url(self, path: Path) -> str:
        """Return the URL that Spark reads in place of a file of this process: that of the input if it is a stand-in."""
        for stand_in, url in self._urls.items():
            if path.is_relative_to(stand_in):
                below = path.relative_to(stand_in)
                return url if path == stand_in else f"{url}/{below}"
        return file_url(path)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name inputs in errors of the block as the user did.

        Raises:
            PlanError: The block raised it.
        """
        try:
            yield
        except PlanError as error:
            text = str(error)
            for stand_in, url in self._urls.items():
                text = text.replace(str(stand_in), url)
            raise PlanError(text) from None

    def path(self, source: Path | Url, *, whole: bool = False) -> Path:
        """Return the file to read for an input: the input itself if this process can reach it, otherwise a stand-in.

        Args:
            source: The input.
            whole: Whether this process reads all of it.

        Raises:
            PlanError: There is no such input, or Spark cannot read it.
        """
        if isinstance(source, Path):
            return source
        files = self._files(source)
        home = self._folder / f"{len(self._urls)}"
        home.mkdir(parents=True)
        stand_in = home / source.name
        self._urls[stand_in] = source
        if [url for url, _ in files] == [source]:
            self._copy_file(source, files[0][1], stand_in, whole=whole)
        else:
            self._copy_folder(source, files, stand_in, whole=whole)
        return stand_in

    def _files(self, url: str) -> list[tuple[str, int]]:
        """Return the files of a folder, or the one file, each with its size in bytes.

        Raises:
            PlanError: It does not exist, or Spark cannot reach it.
        """
        try:
            rows = self.spark.read.format("binaryFile").load(url).select("path", "length").collect()
        except _REFUSALS as error:
            is_missing = isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND"
            raise PlanError(f"{url}: {'No such file or directory' if is_missing else _said(error)}") from None
        # Spark completes names: viewfs:///a becomes viewfs://cluster/a.
        names = [("/" + row["path"].partition("://")[2].partition("/")[2], row["length"]) for row in rows]
        base = "/" + url.partition("://")[2].partition("/")[2].rstrip("/")
        if [name for name, _ in names] == [base]:
            return [(url, names[0][1])]
        direct = [(name.rpartition("/"), size) for name, size in names]
        return sorted((f"{url}/{name}", size) for (folder, _, name), size in direct if folder == base)

    def _is_there(self, url: str) -> bool:
        try:
            self.spark.read.format("binaryFile").load(url).select("path").limit(1).collect()
        except AnalysisException:
            return False
        return True

    def _copy_folder(self, url: Url, files: list[tuple[str, int]], stand_in: Path, *, whole: bool) -> None:
        stand_in.mkdir()
        for mark in _MARKS:
            if self._is_there(f"{url}/{mark}"):
                (stand_in / mark).mkdir()
        if (stand_in / "metadata").exists():
            for name, _ in self._files(f"{url}/metadata"):
                (stand_in / "metadata" / Url(name).name).touch()
        for name, size in files:
            target = stand_in / Url(name).name
            if target.name == BROKERS_FILE or (target.suffix == ".parquet" and whole):
                self._copy_bytes(name, size, target)
            elif target.suffix == ".parquet":
                self._copy_columns(name, target)

    def _copy_file(self, url: str, size: int, stand_in: Path, *, whole: bool) -> None:
        if stand_in.suffix != ".parquet":
            self._copy_head(url, stand_in)
            form = format_of(stand_in)
            if whole or form not in (Format.CSV, Format.JSON_LINES, Format.PARQUET):
                self._copy_bytes(url, size, stand_in)
            if form is not Format.PARQUET:
                return
        if not whole:
            self._copy_columns(url, stand_in)
        else:
            self._copy_bytes(url, size, stand_in)

    def _copy_head(self, url: str, target: Path) -> None:
        """Write the first lines, each cut to a length that no row exceeds."""
        head = F.substring("value", 1, _HEAD_OF_LINE).alias("value")
        lines = [row["value"] for row in self.spark.read.text(url).select(head).limit(_HEAD_LINES).collect()]
        target.write_text("\n".join(lines), encoding="utf-8", errors="replace")

    def _copy_bytes(self, url: str, size: int, target: Path) -> None:
        content = self.spark.read.format("binaryFile").load(url)
        with target.open("wb") as file:
            for start in range(0, size, _PIECE):
                (row,) = content.select(F.substring("content", start + 1, _PIECE).alias("piece")).collect()
                file.write(row["piece"])

    def _copy_columns(self, url: str, target: Path) -> None:
        """Write a file without rows that has the columns of another.

        Raises:
            PlanError: The file is not Parquet.
        """
        try:
            schema = to_arrow_schema(self.spark.read.parquet(url).schema)
        except _REFUSALS as error:
            raise PlanError(f"{url}: not readable as Parquet: {_said(error)}") from None
        pq.write_table(schema.empty_table(), target)
