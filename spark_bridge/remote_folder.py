"""A folder in a file system that only Spark can reach: s3a://, hdfs:// and similar ones.

It is created, filled and removed through Hadoop's own client, in the JVM of the session. With Spark Connect, there is
no such JVM here.
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
"""The value of Java's parameter `recursive`, which cannot be passed by name."""


@frozen
class RemoteFolder:
    """A folder, which need not exist yet.

    Attributes:
        spark: The session.
        url: Its name for Spark and Hadoop.
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
        """Create the folder; return whether it existed before.

        Raises:
            PlanError: It already contains files, or cannot be created.
        """
        with self._system() as (system, path):
            there = bool(system.exists(path))
            if there and len(system.listStatus(path)):
                raise PlanError(f"{self.url} is not empty: name another folder for the plan, or empty this one")
            system.mkdirs(path)
        return there

    def remove(self) -> None:
        """Remove the folder and its contents, if it exists and the file system can still be reached."""
        with suppress(Exception), self._system() as (system, path):
            system.delete(path, *_YES)

    def put(self, file: Path) -> None:
        """Copy a file of this machine into the folder.

        Raises:
            PlanError: The file cannot be written.
        """
        with self._system() as (system, path):
            system.copyFromLocalFile(self._path(f"file://{file.absolute()}"), path)

    def move_files(self, target: RemoteFolder) -> None:
        """Rename its files into another folder of the same file system.

        Raises:
            PlanError: A file cannot be renamed.
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
        """Yield the file system, and the folder's path in it.

        Raises:
            PlanError: The file system is not known here, or rejects an operation in the `with` block.
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
"""A folder that this process and Spark's workers can reach."""


def remove_folder(folder: SharedFolder) -> None:
    """Remove a folder and its contents, if it exists."""
    if isinstance(folder, Path):
        rmtree(folder, ignore_errors=True)
    else:
        folder.remove()


def folder_url(folder: SharedFolder) -> str:
    """Return the name of a folder for Spark, also if Spark's default file system is another one."""
    return f"file://{folder.absolute()}" if isinstance(folder, Path) else folder.url
