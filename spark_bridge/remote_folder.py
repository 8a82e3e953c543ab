"""A folder in a file system that Spark reaches and this process does not: s3a://, hdfs:// and their like.

It is made, filled and removed through Hadoop's own client, in the JVM of the session. Spark Connect has none here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from spark_bridge.errors import PlanError
from spark_bridge.failures import of_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_YES: Final = (True,)
"""Java's `recursive`, which has no name to give it by."""


@frozen
class RemoteFolder:
    """A folder, which need not be there yet.

    Attributes:
        spark: The session.
        url: Its name, as Spark and Hadoop take it.
    """

    spark: SparkSession = field(eq=False, repr=False)
    url: str

    def __str__(self) -> str:
        """Return its name."""
        return self.url

    def __truediv__(self, name: str) -> RemoteFolder:
        """Return a folder in it."""
        return RemoteFolder(self.spark, f"{self.url.rstrip('/')}/{name}")

    def claim(self) -> bool:
        """Make it; return whether it was there before.

        Raises:
            PlanError: It has files already, or cannot be made.
        """
        with self._system() as (system, path):
            there = bool(system.exists(path))
            if there and len(system.listStatus(path)):
                raise PlanError(f"{self.url} is not empty: name another folder for the plan, or empty this one")
            system.mkdirs(path)
        return there

    def remove(self) -> None:
        """Remove it with all that is in it, if it is there and the file system can still be reached."""
        with suppress(Exception), self._system() as (system, path):
            system.delete(path, *_YES)

    def put(self, file: Path) -> None:
        """Copy a file of this machine into it.

        Raises:
            PlanError: It cannot be written.
        """
        with self._system() as (system, path):
            system.copyFromLocalFile(self._path(f"file://{file.absolute()}"), path)

    def move_files(self, target: RemoteFolder) -> None:
        """Give its files their names in another folder of the same file system.

        Raises:
            PlanError: One cannot be renamed.
        """
        with self._system() as (system, path):
            for status in system.listStatus(path):
                name = (target / status.getPath().getName()).url
                if not system.rename(status.getPath(), self._path(name)):
                    raise PlanError(f"{name}: it could not be renamed to that")

    def _path(self, url: str) -> Any:  # noqa: ANN401 (a Java object)
        jvm: Any = self.spark._jvm  # noqa: SLF001 (PySpark has no other way to Hadoop's files)
        return jvm.org.apache.hadoop.fs.Path(url)

    @contextmanager
    def _system(self) -> Iterator[tuple[Any, Any]]:
        """Lend the file system, and the folder as it names it.

        Raises:
            PlanError: Nothing here knows that file system, or it refuses what the block asks of it.
        """
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 (planning without Spark has none)

        settings: Any = self.spark._jsc.hadoopConfiguration()  # noqa: SLF001
        path = self._path(self.url)
        try:
            yield path.getFileSystem(settings), path
        except Py4JJavaError as error:
            said = str(error.java_exception.getMessage() or error.java_exception.toString())
            raise PlanError(f"{self.url}: {of_java(said)}") from None


SharedFolder = Path | RemoteFolder
"""A folder that this process and Spark's workers reach."""


def remove_folder(folder: SharedFolder) -> None:
    """Remove a folder with all that is in it, if it is there."""
    if isinstance(folder, Path):
        rmtree(folder, ignore_errors=True)
    else:
        folder.remove()


def folder_url(folder: SharedFolder) -> str:
    """Return the name of a folder as Spark takes it, also where Spark's own file system is another."""
    return f"file://{folder.absolute()}" if isinstance(folder, Path) else folder.url
