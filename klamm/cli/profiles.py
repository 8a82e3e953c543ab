"""Named profiles of clusters, in a file of the user: where each cluster is, and what else commands have to know of it.

    [production]
    bootstrap-server = "kafka1:9092,kafka2:9092"
    command-config = "production.properties"
    shared-disks = false

A profile that the command line names counts as part of it. One that only the environment names gives way to whatever
else names a cluster, with all that it has: its security is for its own cluster.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from attrs import asdict, evolve, frozen
from click.shell_completion import CompletionItem

from klamm.cli.running import is_given, parse_addresses
from transport.input_files import Limit, UnreadableFile, read_text
from transport.settings import did_you_mean

VARIABLE: Final = "KLAMM_PROFILE"
_TEXTS: Final = ("bootstrap-server", "zookeeper", "command-config")
_SHARED_DISKS: Final = "shared-disks"
_KEYS: Final = (*_TEXTS, _SHARED_DISKS)
_LIMIT: Final = Limit(1, "this is no file of profiles")


@frozen
class Place:
    """The names of a cluster and of the file with its security; None for what is not named."""

    bootstrap_server: str | None = None
    zookeeper: str | None = None
    command_config: str | None = None
    shared_disks: bool | None = None
    """Whether log directories of a broker that look alike are on one disk."""
    profile: str | None = None
    """The profile that names it, if any."""

    @property
    def is_named(self) -> bool:
        """Whether this names a cluster."""
        return self.bootstrap_server is not None or self.zookeeper is not None


def profiles_file() -> Path:
    """Return where the profiles are, by the XDG base directories."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    # A relative path is invalid there, and to be ignored.
    base = Path(config) if config.startswith("/") else Path.home() / ".config"
    return base / "klamm" / "profiles.toml"


def read_profile(name: str) -> Place:
    """Return a profile of the user's file. Raises click.ClickException, in one line with the file."""
    file = profiles_file()
    profiles = _tables(file)
    if name not in profiles:
        known = f"it has {', '.join(sorted(profiles))}" if profiles else "it has none"
        raise click.ClickException(f"{file}: there is no profile {name}: {known}")
    return _place(file, name, profiles[name])


def _tables(file: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(read_text(file, _LIMIT))
    except UnreadableFile as fault:
        raise click.ClickException(f"cannot read the profiles: {fault}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise click.ClickException(f"{file}: not TOML: {error}") from None


def _place(file: Path, name: str, values: object) -> Place:
    where = f"{file}: [{name}]"
    if not isinstance(values, dict):
        raise click.ClickException(f"{file}: {name} is no profile: begin one with [NAME]")
    for key, value in values.items():
        if key not in _KEYS:
            raise click.ClickException(f"{where}: there is no key {key}{did_you_mean(key, _KEYS)}")
        if key == _SHARED_DISKS:
            if not isinstance(value, bool):
                raise click.ClickException(f"{where}: {key} must be true or false")
        elif not isinstance(value, str) or not value.strip():
            raise click.ClickException(f'{where}: {key} must be a string such as "…", and not empty')
    bootstrap, zookeeper, config = (values.get(key) for key in _TEXTS)
    if (bootstrap is None) is (zookeeper is None):
        raise click.ClickException(f"{where}: give it either bootstrap-server or zookeeper")
    if bootstrap is not None:
        try:
            parse_addresses(bootstrap)
        except click.BadParameter as error:
            raise click.ClickException(f"{where}: bootstrap-server: {error.message}") from None
    # A path is relative to the file, not to where the command happens to be typed.
    security = None if config is None else str(file.parent / Path(config).expanduser())
    return Place(bootstrap, zookeeper, security, values.get(_SHARED_DISKS), name)


def disks_remedy(place: Place) -> str:
    """Return the line that says whether log directories that look alike are on one disk, and the file to add it to."""
    lines = f"`{_SHARED_DISKS} = true` if they are, `{_SHARED_DISKS} = false` if not"
    if place.profile is not None:
        return f"add a line under [{place.profile}] in {profiles_file()}, {lines}"
    key = _TEXTS[0] if place.zookeeper is None else _TEXTS[1]
    address = place.bootstrap_server if place.zookeeper is None else place.zookeeper
    profile = f'`[NAME]`, `{key} = "{address}"`'
    return f"add lines for a profile to {profiles_file()}, {profile}, and {lines}, and give --profile NAME"


# --- the option -------------------------------------------------------------------------------------------------


def profile_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option for a profile; the command receives a `Place`, or None."""
    return click.option(
        "--profile",
        envvar=VARIABLE,
        show_envvar=True,
        metavar="NAME",
        callback=_read,
        shell_complete=_names,
        help="A cluster of ~/.config/klamm/profiles.toml.",
    )(command)


def _read(context: click.Context, _option: click.Parameter, name: str | None) -> Place | None:
    if name is None:
        return None
    try:
        return read_profile(name)
    except click.ClickException:
        if context.resilient_parsing:  # for a completion
            return None
        raise


def _names(_context: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    try:
        known = sorted(_tables(profiles_file()))
    except click.ClickException:
        return []
    return [CompletionItem(name) for name in known if name.startswith(begun)]


def settled(profile: Place | None, given: Place, context: click.Context | None = None) -> Place:
    """Return which cluster counts, and its security; `given` has the values of options and their variables."""
    if profile is None:
        return given
    if is_given("profile", context):
        values = asdict(given).items()
        typed = Place(**{name: value for name, value in values if is_given(name, context)})
        return evolve(typed if typed.is_named else profile, command_config=_first(typed, profile))
    return given if given.is_named else evolve(profile, command_config=_first(given, profile))


def _first(*places: Place) -> str | None:
    """Return the first file with the security of a cluster that is named."""
    return next((place.command_config for place in places if place.command_config is not None), None)
