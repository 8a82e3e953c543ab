"""Completion of the command in a shell, with the script that it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KLAMM = Path(sys.executable).with_name("klamm")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("klamm re", ["reassignment"]),
        ("klamm topic cr", ["create"]),
        ("klamm topic delete --boots", ["--bootstrap-server"]),
    ],
)
def test_bash_completes_with_the_script(words: str, expected: list[str]) -> None:
    script = subprocess.run([str(KLAMM), "completion", "bash"], capture_output=True, text=True, check=True).stdout
    typed = f"{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); compopt() {{ :; }}\n"
    ask = f'{typed}_klamm_completion "{KLAMM}"; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_another_shell_is_refused_with_those_there_are() -> None:
    done = subprocess.run([str(KLAMM), "completion", "csh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr
