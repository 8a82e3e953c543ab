"""`python -m tests.house.wheel`: the wheel installs in a clean environment without tests or PySpark and runs there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Build, look inside, install, run; end with exit code 1 and a line about the first thing that is wrong."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    version = project["project"]["version"]
    with tempfile.TemporaryDirectory(prefix="klamm-wheel-") as directory:
        scratch = Path(directory)
        pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
        run(scratch, sys.executable, *pip, "wheel", str(ROOT), "--no-deps", "--wheel-dir", str(scratch))
        [wheel] = scratch.glob("klamm-*.whl")
        missing = _files(packages) - set(_names(wheel))
        if missing:
            sys.exit(f"the wheel lacks {', '.join(sorted(missing))}")
        others = {name.partition("/")[0] for name in _names(wheel)} - packages - {f"klamm-{version}.dist-info"}
        if others:
            sys.exit(f"the wheel holds what it should not: {', '.join(sorted(others))}")
        run(scratch, sys.executable, "-m", "venv", "clean")
        python, klamm = scratch / "clean/bin/python", str(scratch / "clean/bin/klamm")
        run(scratch, str(python), *pip, "install", str(wheel))
        if (
            run(scratch, str(python), "-c", "import importlib.util as u; print(u.find_spec('pyspark'))").strip()
            != "None"
        ):
            sys.exit("PySpark came along, which is an extra")
        if not run(scratch, klamm, "--version").strip().endswith(version):
            sys.exit(f"klamm --version does not say {version}")
        shutil.copytree(ROOT / "examples", scratch / "examples")
        run(
            scratch,
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--explicit-package-bases",
            "--python-executable",
            str(python),
            "examples",
        )
        print(run(scratch, klamm, "demo", "--store", "memory"), end="")
        print(f"{wheel.name} installs, runs by itself, and is typed for the programs in examples/")


def run(directory: Path, *command: str) -> str:
    """Run a command outside the checkout and return what it printed; if it fails, show that and end."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _files(packages: set[str]) -> set[str]:
    """Return the files of the packages: modules, and what they read when they run, such as templates."""
    tracked = subprocess.run(["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(tracked.stdout.split())


if __name__ == "__main__":
    main()
