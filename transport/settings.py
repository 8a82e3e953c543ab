"""Settings under Kafka's names: their types and bounds, as text and as values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_type_hints

import attrs
from attrs import AttrsInstance, frozen

Value = bool | int | float | str

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_BOOLEANS: Final = {"true": True, "false": False}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_THROTTLED_REPLICAS: Final = re.compile(r"\*|([0-9]{1,10}:[0-9]{1,10}(,[0-9]{1,10}:[0-9]{1,10})*)?")


class Kind(Enum):
    """The type of a setting's values: Kafka's types, each with its name in error messages."""

    BOOLEAN = "true or false"
    INT = "an integer"
    LONG = "a long integer"
    DOUBLE = "a number"
    STRING = "a string"
    REPLICAS = "* or PARTITION:BROKER,PARTITION:BROKER,..."


_NUMBERS: Final = frozenset({Kind.INT, Kind.LONG, Kind.DOUBLE})


class InvalidSetting(ValueError):
    """An unknown setting or an invalid value; the message says what is valid."""


@frozen
class Setting:
    """A setting: Kafka's name and the valid values. Numbers lie between `at_least` and `at_most`."""

    name: str
    kind: Kind
    default: Value | None
    doc: str
    at_least: int = 0
    at_most: int = INT_MAX

    def parse(self, text: str) -> Value:
        """Return the value of a text from a znode or a command. Raises InvalidSetting."""
        text = text.strip()
        match self.kind:
            case Kind.BOOLEAN:
                return self.check(_BOOLEANS.get(text.lower(), text))
            case Kind.INT | Kind.LONG:
                return self.check(int(text) if _INTEGER.fullmatch(text) else text)
            case Kind.DOUBLE:
                return self.check(float(text) if _NUMBER.fullmatch(text) else text)
            case Kind.STRING | Kind.REPLICAS:
                return self.check(text)

    def check(self, value: object) -> Value:
        """Return `value` if it has the setting's type and is within its bounds. Raises InvalidSetting."""
        match value:
            case bool() if self.kind is Kind.BOOLEAN:
                return value
            # A bool is an int to Python, and no number here.
            case bool():
                pass
            case int() if self.kind in _NUMBERS and self.at_least <= value <= self.at_most:
                return value
            case float() if self.kind is Kind.DOUBLE and self.at_least <= value <= self.at_most:
                return value
            case str() if self.kind is Kind.STRING and value:
                return value
            case str() if self.kind is Kind.REPLICAS and _THROTTLED_REPLICAS.fullmatch(value):
                return value
        raise InvalidSetting(f"{self.name} must be {self.range}, is {value!r:.200}")

    @property
    def range(self) -> str:
        """The valid values in words."""
        kind = str(self.kind.value)
        if self.kind not in _NUMBERS:
            return kind
        if self.at_most in {INT_MAX, LONG_MAX}:
            return f"{kind} from {self.at_least}"
        return f"{kind} from {self.at_least} to {self.at_most}"


def render(value: Value) -> str:
    """Return a value as Kafka writes it into znodes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def find(settings: Mapping[str, Setting], name: str) -> Setting:
    """Return the setting with a name. Raises InvalidSetting, which suggests the nearest name."""
    if name not in settings:
        raise InvalidSetting(f"there is no setting {name}{did_you_mean(name, settings)}")
    return settings[name]


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name that suggests the nearest valid one, or lists them all."""
    names = sorted(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    return f": did you mean {near[0]}?" if near else f": valid are {', '.join(names)}"


# --- settings of a process, given at its start ------------------------------------------------------------------

_METADATA: Final = "setting"
_KINDS: Final[Mapping[object, Kind]] = {
    bool: Kind.BOOLEAN,
    int: Kind.INT,
    int | None: Kind.INT,
    float: Kind.DOUBLE,
    str: Kind.STRING,
    str | None: Kind.STRING,
    Path: Kind.STRING,
}


@frozen
class _About:
    doc: str
    name: str | None
    at_least: int
    at_most: int


def setting(
    default: Any = attrs.NOTHING,  # noqa: ANN401  of the field's type
    doc: str = "",
    *,
    name: str | None = None,
    at_least: int = 0,
    at_most: int = INT_MAX,
) -> Any:  # noqa: ANN401  as attrs.field, which type checkers know
    """Declare a field of a config class: its default, its description, and the bounds of a number.

    `name` is Kafka's name, if that is not the name of the field with dots.
    """
    return attrs.field(default=default, metadata={_METADATA: _About(doc, name, at_least, at_most)})


@cache
def settings_of(config: type[AttrsInstance]) -> Mapping[str, Setting]:
    """Return the settings of a config class by field name, those of the class itself before inherited ones."""
    types = get_type_hints(config)
    fields = sorted(attrs.fields(config), key=lambda field: field.inherited)
    return MappingProxyType({field.name: _declared(field, types[field.name]) for field in fields})


def _declared(field: attrs.Attribute[Any], type_: object) -> Setting:
    about: _About = field.metadata[_METADATA]
    default = None if field.default is attrs.NOTHING else field.default
    name = about.name or field.name.replace("_", ".")
    return Setting(name, _KINDS[type_], default, about.doc, about.at_least, about.at_most)
