"""Write the schemas of all documents, as they are now: `python -m tests.cli.walk.write`."""

from __future__ import annotations

import json

from klamm.cli.formats import schema_of
from tests.cli.walk.commands import FORMATTED
from tests.cli.walk.test_conventions import SCHEMAS

if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for words, command in FORMATTED.items():
        text = json.dumps(schema_of(command), indent=2) + "\n"
        (SCHEMAS / f"{words.replace(' ', '-')}.json").write_text(text, encoding="utf-8")
