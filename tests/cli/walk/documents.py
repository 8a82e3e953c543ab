"""Whether a document is of the type that its command declares, with all of its fields and no other."""

from __future__ import annotations

from typing import Any

import msgspec

from klamm.cli.formats import document_types
from tests.cli.walk.commands import FORMATTED
from tests.cli.walk.recording import Call


def faults(call: Call) -> list[str]:
    """Return why what a call with `-o json` prints is not the document of its command; nothing if it is."""
    if not call.stdout:
        # A command that ends with an error line has no document.
        return [] if call.code and "Error: " in call.stderr else [f"no document: exit {call.code}, {call.stderr}"]
    texts = call.stdout.splitlines() if call.words == "consume" else [call.stdout]
    return [fault for text in texts for fault in _faults(call.words, text)]


def _faults(words: str, text: str) -> list[str]:
    found = [_fault(kind, text) for kind in document_types(FORMATTED[words])]
    return [] if None in found else [fault for fault in found if fault is not None]


def _fault(kind: Any, text: str) -> str | None:  # noqa: ANN401  any type that msgspec knows
    """Return why a text is not of a type; None if it is, and its fields are just those of the type."""
    try:
        value = msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        return f"{kind}: {error}"
    return _difference(msgspec.json.decode(text), msgspec.json.decode(msgspec.json.encode(value)), str(kind))


def _difference(printed: object, declared: object, where: str) -> str | None:
    """Return the first place in which a document differs from its type: a field that the type does not have."""
    if isinstance(printed, dict) and isinstance(declared, dict):
        if printed.keys() != declared.keys():
            return f"{where}: fields {sorted(printed.keys() ^ declared.keys())} are only on one side"
        found = (_difference(printed[name], declared[name], f"{where}.{name}") for name in printed)
        return next((fault for fault in found if fault is not None), None)
    if isinstance(printed, list) and isinstance(declared, list):
        pairs = enumerate(zip(printed, declared, strict=True))
        found = (_difference(one, other, f"{where}[{number}]") for number, (one, other) in pairs)
        return next((fault for fault in found if fault is not None), None)
    return None if printed == declared else f"{where}: {printed!r} is not {declared!r}"
