"""Settings under Kafka's names: their types and bounds, as text and as values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
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
    """What values a setting has: Kafka's types, and how a fault names them."""

    BOOLEAN = "true or false"
    INT = "an integer"
    LONG = "a long integer"
    DOUBLE = "a number"
    STRING = "a string"
    REPLICAS = "* or PARTITION:BROKER,PARTITION:BROKER,..."


_NUMBERS: Final = frozenset({Kind.INT, Kind.LONG, Kind.DOUBLE})


class InvalidSetting(ValueError):
    """A setting does not exist or cannot have that value; the message says what is valid."""


@frozen
class Setting:
    """One setting: Kafka's name, and what values it may have. A number lies between `at_least` and `at_most`."""

    name: str
    kind: Kind
    default: Value | None
    doc: str
    at_least: int = 0
    at_most: int = INT_MAX

    def parse(self, text: str) -> Value:
        """Return the value that a text stands for, as a znode or a command has it. Raises InvalidSetting."""
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
        """Return a value of the setting's type and within its bounds. Raises InvalidSetting."""
        match value:
            case bool() if self.kind is Kind.BOOLEAN:
                return value
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
        """What values are valid, in words."""
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
    """Return the setting of a name. Raises InvalidSetting that names the nearest one."""
    if name not in settings:
        raise InvalidSetting(f"there is no setting {name}{did_you_mean(name, settings)}")
    return settings[name]


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return the end of a sentence that names what is nearest to a name that is not valid."""
    names = sorted(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    return f": did you mean {near[0]}?" if near else f": valid are {', '.join(names)}"


# --- settings that a process starts with ------------------------------------------------------------------------

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
    default: Any = attrs.NOTHING,  # noqa: ANN401  whatever the field's type is
    doc: str = "",
    *,
    name: str | None = None,
    at_least: int = 0,
    at_most: int = INT_MAX,
) -> Any:  # noqa: ANN401  as attrs.field, which type checkers know
    """Declare a field of a config class: its default, what it is, and its bounds if it is a number.

    `name` is Kafka's where that is not the field's own with dots.
    """
    return attrs.field(default=default, metadata={_METADATA: _About(doc, name, at_least, at_most)})


def settings_of(config: type[AttrsInstance]) -> dict[str, Setting]:
    """Return the settings that the fields of a config class are, by the name of the field, its own ones first."""
    types = get_type_hints(config)
    fields = sorted(attrs.fields(config), key=lambda field: field.inherited)
    return {field.name: _declared(field, types[field.name]) for field in fields}


def _declared(field: attrs.Attribute[Any], type_: object) -> Setting:
    about: _About = field.metadata[_METADATA]
    default = None if field.default is attrs.NOTHING else field.default
    name = about.name or field.name.replace("_", ".")
    return Setting(name, _KINDS[type_], default, about.doc, about.at_least, about.at_most)
