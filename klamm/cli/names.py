"""Names and numbers on the command line. Their form is checked before they are sent, not their existence."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from transport.metadata import number_in
from transport.settings import INT_MAX, LONG_MAX


class Integer(click.IntRange):
    """An integer in a range, which is called an integer."""

    name = "integer"


class Number(Integer):
    """An integer of at least `at_least` that fits the field of a message."""

    def __init__(self, at_least: int, at_most: int) -> None:
        super().__init__(min=at_least)
        self._at_most = at_most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the number."""
        number = int(super().convert(value, param, ctx))
        if number > self._at_most:
            self.fail(f"{number} is too large: the maximum is {self._at_most}", param, ctx)
        return number


NOTHING_TO_CHANGE: Final = "nothing_to_change"
"""The field by which the JSON of a plan without partitions says that this is no mistake."""

COUNT: Final = Number(1, INT_MAX)
PARTITION: Final = Number(0, INT_MAX)
OFFSET: Final = Number(0, LONG_MAX)


class Bytes(click.ParamType[int]):
    """A number of bytes with or without a unit: 50MB, 64MiB, 1500; with `per_second`, a rate such as 20MB/s."""

    _UNITS: Final = {
        "": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4, "pb": 1000**5,
        "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50,
    }  # fmt: skip
    _FORM: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")

    def __init__(self, *, per_second: bool) -> None:
        self.name = "rate" if per_second else "size"
        self._per_second = per_second

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the number of bytes, at least 1."""
        text = str(value).strip().lower()
        form = self._FORM.fullmatch(text.removesuffix("/s") if self._per_second else text)
        if form is None or form[2] not in self._UNITS:
            example = "20MB/s, 500kB/s or 1048576" if self._per_second else "50GB, 64MiB or 1048576"
            self.fail(f"{value!r} is not a {self.name} such as {example}", param, ctx)
        number = Decimal(form[1]) * self._UNITS[form[2]]
        if number != int(number) or not 1 <= number <= LONG_MAX:
            self.fail(f"{value!r} is not a whole number of bytes from 1 to {LONG_MAX}", param, ctx)
        return int(number)


RATE: Final = Bytes(per_second=True)
SIZE: Final = Bytes(per_second=False)


class TopicName(click.ParamType[str]):
    """The name of a topic that may or may not exist."""

    name = "topic"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Fail if it cannot be sent."""
        if not is_text(value):
            self.fail(f"{value!r} is not the name of a topic: it is not UTF-8", param, ctx)
        return value


class KnownTopic(TopicName):
    """The name of a topic, which a shell completes with those of the cluster."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  as click has it
        """Return the names that begin so; none if the cluster does not answer."""
        from klamm.cli.completions import topics_of

        return [CompletionItem(name) for name in topics_of(ctx) if name.startswith(incomplete)]


NEW_TOPIC: Final = TopicName()
TOPIC: Final = KnownTopic()


def is_text(value: str) -> bool:
    """Return whether an argument of the command line was UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def check_text(value: str, option: str) -> None:
    """Raise click.BadParameter if an argument of the command line was not UTF-8."""
    if not is_text(value):
        raise click.BadParameter(f"{value!r} is not UTF-8", param_hint=option)


def broker_ids(text: str, separator: str = ",") -> tuple[int, ...] | None:
    """Return the ids in a list of brokers such as "3,1,2"; None if it is no such list."""
    parts = text.split(separator)
    ids = [id_ for part in parts if (id_ := number_in(part.strip())) is not None]
    return tuple(ids) if len(ids) == len(parts) else None


def is_broker_id(value: object) -> bool:
    """Return whether a value of a JSON document can be the id of a broker."""
    return type(value) is int and 0 <= value <= INT_MAX
