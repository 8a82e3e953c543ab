"""The code that Spark's workers need of this program, as one zip file, so that they need no installation."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import attr
import attrs

import spark_bridge

_PACKAGES = (attr, attrs, spark_bridge)
"""The packages that workers import, except NumPy and PyArrow: these are compiled, so workers must have them."""


def zip_for_workers(folder: Path) -> Path:
    """Write the packages that workers import into a zip file in `folder`; return its path."""
    path = folder / "klamm_workers.zip"
    with ZipFile(path, "w") as archive:
        for package in _PACKAGES:
            home = Path(str(package.__file__)).parent
            for file in sorted(home.rglob("*.py")):
                archive.write(file, file.relative_to(home.parent))
    return path
