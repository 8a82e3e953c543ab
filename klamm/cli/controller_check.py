"""`klamm controller check`: whether a controller could govern a cluster of Apache Kafka's brokers, without standing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from controller.config import ControllerConfig
from controller.model.kafka_checks import Finding, exit_code
from controller.node.kafka_checks import KafkaChecks
from controller.node.kafka_listeners import kafka_listeners
from klamm.cli.formats import View, output_options
from klamm.cli.running import configure_logs, run
from klamm.cli.settings import given, setting_options
from transport.network import TcpNetwork
from transport.service_security import secured_for_service, security_of_service
from transport.settings import InvalidSetting
from transport.store.existing import open_existing
from transport.store.security import security_of

_WELL: Final = "well: nothing speaks against this controller"


class FoundByCheck(Struct):
    """Something that speaks against a controller; `weight` is "look", "could not tell" or "danger"."""

    weight: str
    text: str


class CheckedController(Struct):
    """The findings about a controller, and the exit code for the gravest of them."""

    exit_code: int
    findings: list[FoundByCheck]


@click.command(name="check")
@setting_options("controller", port="any free port")
@output_options(CheckedController)
def check_controller(config: Path | None, **flags: object) -> View:
    """Check the settings of a controller for Apache Kafka's brokers.

    Takes the options of `klamm controller run --kafka`. Compares the listeners with those in the brokers' own
    settings, connects to each broker with the controller's credentials, and looks whether the id is free, the znodes
    can be written, and the releases are supported. It changes nothing, and does not stand for election.

    The exit code is 0 if all is well, 3 if there is something to look at, 4 if there is a danger, 1 if something could
    not be read, and 2 for wrong options.
    """
    settings = ControllerConfig(**given("controller", config, flags))
    if not settings.kafka:
        raise click.UsageError("add --kafka: only the brokers of Apache Kafka need these checks")
    try:
        kafka_listeners(settings)
        settings.check_protocol()
        security = security_of_service(settings)
    except InvalidSetting as invalid:
        raise click.UsageError(str(invalid)) from None
    configure_logs()

    async def work() -> list[Finding]:
        opening = open_existing(settings.zookeeper_connect, security=security_of(settings))
        async with opening as store:
            network = secured_for_service(TcpNetwork(), security, store)
            return await KafkaChecks(settings, network).all(store)

    found = run(work)
    rows = [FoundByCheck(finding.weight.value, finding.text) for finding in found]
    code = exit_code(found)
    return View(CheckedController(code, rows), list(map(str, found)) or [_WELL], code)
