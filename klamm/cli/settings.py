"""The settings that a service starts with, from `klamm.toml` and from flags, which take precedence.

Both are derived from the fields of the config classes, under Kafka's names. An unknown setting or an invalid value is
rejected before anything starts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from attrs import AttrsInstance

from broker.config import BrokerConfig
from controller.config import ControllerConfig
from transport.input_files import Limit, UnreadableFile, read_text
from transport.settings import InvalidSetting, Kind, Setting, did_you_mean, find, render, settings_of

Config = TypeVar("Config", bound=AttrsInstance)

SECTIONS: Final[Mapping[str, type[AttrsInstance]]] = {"controller": ControllerConfig, "broker": BrokerConfig}
"""The tables of `klamm.toml`."""

ONE_OF: Final = frozenset({"log_dir", "log_dirs"})
"""Settings that exclude each other as flags; if a file has both, `log.dirs` takes precedence, as in Kafka."""

LIMIT: Final = Limit(1, "this is not a settings file")

SHORT_FLAGS: Final = {
    "controller_id": "--id",
    "broker_id": "--id",
    "rack": "--rack",
    "zookeeper_connect": "--zookeeper",
    "zookeeper_session_timeout_ms": "--session-timeout",
}
"""Short flags, by field."""


# --- klamm.toml -------------------------------------------------------------------------------------------------


def read_file(path: Path, section: str) -> dict[str, Any]:
    """Return the values of one table of a file, by the fields of its config class.

    A name may be written as one quoted key or as nested tables. The other table is checked too, because both belong to
    one cluster. Raises click.ClickException, in one line with the file, the key, and the nearest valid name.
    """
    try:
        tables = tomllib.loads(read_text(path, LIMIT))
    except UnreadableFile as fault:
        raise click.ClickException(f"{fault}: name another file with --config") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise click.ClickException(f"{path}: not TOML: {error}") from None
    values = {}
    for name, table in tables.items():
        if name not in SECTIONS or not isinstance(table, dict):
            raise click.ClickException(f"{path}: there is no table [{name}]{did_you_mean(name, SECTIONS)}")
        try:
            values[name] = dict(_values(table, settings_of(SECTIONS[name])))
        except InvalidSetting as invalid:
            raise click.ClickException(f"{path}: [{name}]: {invalid}") from None
    return values.get(section, {})


def _values(table: Mapping[str, object], settings: Mapping[str, Setting]) -> Iterator[tuple[str, Any]]:
    by_name = {setting.name: setting for setting in settings.values()}
    fields = {setting.name: field for field, setting in settings.items()}
    seen = set[str]()
    for name, value in _flatten(table, ""):
        setting = find(by_name, name)
        if name in seen:
            raise InvalidSetting(f"{name} is given twice")
        seen.add(name)
        yield fields[name], setting.check(value)


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


# --- flags ------------------------------------------------------------------------------------------------------


def setting_options(section: str, **defaults: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Add `--config` and a flag for each setting of a table; `defaults` describe defaults that are computed.

    The command receives the values by the names of the fields, None for those not given.
    """

    def decorate(command: click.decorators.FC) -> click.decorators.FC:
        for field, setting in reversed([*settings_of(SECTIONS[section]).items()]):
            command = _option(field, setting, defaults.get(field))(command)
        type_ = click.Path(path_type=Path)
        return click.option("--config", type=type_, help=f"Settings in TOML, in a table [{section}].")(command)

    return decorate


def _option(field: str, setting: Setting, default: str | None) -> Callable[[click.decorators.FC], click.decorators.FC]:
    flag = f"--{setting.name.replace('.', '-')}"
    if default is None and setting.default is not None:
        default = render(setting.default)
    text = setting.doc if default is None else f"{setting.doc}  [default: {default}]"
    if setting.kind is Kind.BOOLEAN:
        return click.option(f"{flag}/--no-{flag[2:]}", field, default=None, help=text)
    flags = [SHORT_FLAGS[field], flag] if SHORT_FLAGS.get(field, flag) != flag else [flag]
    metavar = setting.kind.name
    return click.option(*flags, field, metavar=metavar, callback=_parsed(setting), help=text)


def _parsed(setting: Setting) -> Callable[[click.Context, click.Parameter, str | None], object]:
    def parse(_context: click.Context, _option: click.Parameter, text: str | None) -> object:
        try:
            return None if text is None else setting.parse(text)
        except InvalidSetting as invalid:
            raise click.BadParameter(str(invalid)) from None

    return parse


# --- together ---------------------------------------------------------------------------------------------------


def given(section: str, config: Path | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values of a table's settings, by field. Flags take precedence over the file `config`."""
    values = {} if config is None else read_file(config, section)
    flagged = {field: value for field, value in flags.items() if value is not None}
    if flagged.keys() >= ONE_OF:
        raise click.UsageError("use either --log-dir or --log-dirs, not both")
    if ONE_OF & flagged.keys():
        values = {field: value for field, value in values.items() if field not in ONE_OF}
    values |= flagged
    first, setting = next(iter(settings_of(SECTIONS[section]).items()))
    if first not in values:
        raise click.UsageError(f"give the {section} an id with --id, or with {setting.name} in the file of --config")
    return values
