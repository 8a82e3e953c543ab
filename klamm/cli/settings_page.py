"""The page of settings: `python -m klamm.cli.settings_page` writes `docs/configuration.md`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from klamm.cli.settings import SECTIONS
from transport.dynamic_configs import BROKER_SETTINGS, TOPIC_SETTINGS
from transport.settings import LONG_MAX, Setting, render, settings_of

PATH: Final = Path(__file__).parents[2] / "docs" / "configuration.md"

_STARTED = """\
# Configuration

Settings have Kafka's names wherever Kafka has the setting. `python -m klamm.cli.settings_page` generates this page from
the code, and a test fails if they differ.

## Settings at the start

A service reads a file in TOML and flags; flags override the file. Both services can share one file:

```toml
[controller]
"zookeeper.connect" = "127.0.0.1:2181/klamm"
"zookeeper.session.timeout.ms" = 6000

[broker]
zookeeper.connect = "127.0.0.1:2181/klamm" # the same without quotes
min.insync.replicas = 2
```

```
klamm controller run --config klamm.toml --id 1001
klamm broker run --config klamm.toml --id 1
klamm broker run --config klamm.toml --id 2 --min-insync-replicas 1
```

A flag is the name of the setting with dashes. `--id`, `--rack`, `--zookeeper` and `--session-timeout` are short for
`--controller-id` or `--broker-id`, `--broker-rack`, `--zookeeper-connect` and `--zookeeper-session-timeout-ms`. An
unknown setting or an invalid value is rejected with the file, the key and the nearest valid name, and nothing starts:

```
$ klamm broker run --config klamm.toml --id 1
Error: klamm.toml: [broker]: there is no setting min.insync.replica: did you mean min.insync.replicas?
```

`log.dirs` takes precedence over `log.dir`, as in Kafka. A flag for either takes precedence over both in the file, and
flags for both are refused.

A service that starts before ZooKeeper waits for it, and logs this at once and every 30 s. It also waits for an unknown
host, because the name may be registered later. `zookeeper.connection.timeout.ms` limits the wait, after which the
service ends with an error; unlike in Kafka there is no limit by default. Refused credentials, an untrusted certificate
and a malformed address end the service at once.

A service listens on `host` and advertises it to others. If others cannot use this address, for example behind a NAT or
in a container, set `advertised.host` and `advertised.port`, which correspond to Kafka's `advertised.listeners`. A
service that listens on every address of a machine, for example with `--host 0.0.0.0`, needs `advertised.host`: as in
Kafka, a wildcard address cannot be advertised, and the service does not start.

The default port of a broker is 9091 + id; a broker with an id above 56444 needs `--port`.

A program that embeds a controller or a broker passes the same settings to `klamm.ControllerConfig` or
`klamm.BrokerConfig`, under names with underscores.
"""

_CHANGED = """\
## Settings at run time

Settings of topics and brokers are stored below `/config` in ZooKeeper, in Kafka's format, and take effect without a
restart. The first of these values is in effect: the topic's own, that of the broker that leads the partition, the
default of all brokers, the value that the process was started with. `klamm config describe` shows which one it is:

```
klamm config alter --entity-type topics --entity-name orders --add-config min.insync.replicas=2
klamm config alter --entity-type brokers --entity-default --add-config unclean.leader.election.enable=true
klamm config alter --entity-type topics --entity-name orders --delete-config min.insync.replicas
klamm config describe --entity-type topics --entity-name orders
klamm topic create payments --replication-factor 3 --config min.insync.replicas=2
```

Settings that Kafka's tools have written there and Klamm does not know stay as they are. An invalid value in ZooKeeper
is set aside and logged, and the next value in the order above is in effect; an invalid value never allows an unclean
election.

The controller decides by `unclean.leader.election.enable`, so it can be a default of all brokers but not a setting of a
single broker. When it becomes true, elections for partitions without a leader are retried. Such an election loses the
records that only dead brokers have.
"""


def text() -> str:
    """Return the whole page."""
    parts = [_STARTED]
    for section, config in SECTIONS.items():
        parts.append(f"### [{section}]\n\n{_table(settings_of(config).values())}")
    parts.append(_CHANGED)
    parts.append(f"### Topics\n\n{_table(TOPIC_SETTINGS.values())}")
    parts.append(f"### Brokers, and the default of all brokers\n\n{_table(BROKER_SETTINGS.values())}")
    return "\n".join(parts)


def _table(settings: Iterable[Setting]) -> str:
    rows = "".join(f"| `{s.name}` | {_valid(s)} | {_default(s)} | {s.doc} |\n" for s in settings)
    return f"| name | valid values | default | description |\n| --- | --- | --- | --- |\n{rows}"


def _valid(setting: Setting) -> str:
    return setting.range.replace("*", "`*`")


def _default(setting: Setting) -> str:
    if setting.default in {None, ""}:
        return ""
    return "no limit" if setting.default == LONG_MAX else f"`{render(setting.default)}`"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
