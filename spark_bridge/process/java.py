"""The Java that Spark needs, searched for in the same places as Spark does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

OLDEST_JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_CURE = f"install Java {OLDEST_JAVA} or later (Debian: openjdk-17-jre-headless) and have it in PATH or JAVA_HOME"


def java_problem() -> str | None:
    """Return one line that says what is wrong with this machine's Java and what to do; None if nothing is wrong."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118 (which() takes text)
    if java is None:
        place = f"JAVA_HOME={home}" if home else "PATH"
        return f"planning needs Java, and there is none in {place}: {_CURE}"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None:
        return f"planning needs Java, and {java} does not run: {_CURE}"
    if int(version[1]) < OLDEST_JAVA:
        return f"planning needs Java {OLDEST_JAVA} or later, and {java} is {version[1]}: {_CURE}"
    return None
