"""Parts of the command of each benchmark."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio

from transport.zookeeper_server import DevelopmentServerError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def parser(document: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command whose help begins with the first line of a docstring."""
    return argparse.ArgumentParser(description=(document or "").partition("\n")[0])


def on_zookeeper(measure: Callable[[*Ts], Awaitable[T]], *arguments: *Ts) -> T:
    """Return what is measured on a ZooKeeper; end the process with a sentence if there can be none."""
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    try:
        return trio.run(measure, *arguments)
    except DevelopmentServerError as error:
        sys.exit(str(error))
