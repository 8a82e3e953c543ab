"""A real browser: opens a page that the tests wrote, and returns the result."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from attrs import frozen

MISSING = "no Chromium to open the page in: apt-get install chromium (or google-chrome)"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
_CONSOLE = re.compile(r"CONSOLE[:(].*")


@frozen
class Opened:
    """A page after its scripts have run, and the messages on the console."""

    dom: str
    console: list[str]


def chromium() -> str | None:
    """Return where the browser is; None where there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def opened(page: bytes, folder: Path, width: int = 1280) -> Opened:
    """Open a page in a window of some width and return what became of it."""
    binary = chromium()
    assert binary is not None, MISSING
    file = folder / "page.html"
    file.write_bytes(page)
    command = [binary, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return Opened(done.stdout, _CONSOLE.findall(done.stderr))


def with_script(page: bytes, script: str) -> bytes:
    """Return a page that runs one more script at its end, which its own policy would not permit."""
    permitted = re.sub(rb"'sha256-[^']+'", b"'unsafe-inline'", page)
    return permitted.replace(b"</body>", f"<script>{script}</script></body>".encode())
