"""The commands on secured clusters of Apache Kafka's alone, with the client.properties that Kafka's own tools take."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain, product
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import evolve, frozen
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.cli.shell import run_klamm
from tests.kafka import jars
from tests.kafka.cluster_security import (
    BROKER,
    CLIENT,
    MECHANISM,
    MODULES,
    STORE_PASSWORD,
    java_tls,
    login_module,
    password_of,
    write_properties,
)
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.kraft_cluster import RELEASE, kraft_cluster
from tests.kafka.real_brokers import real_broker
from tests.kafka.releases import require_jars
from tests.kit.certificates import Authority, as_jks, as_pkcs12, authority, trusted_as_jks
from transport.zookeeper_server import HOST, free_port

pytestmark = pytest.mark.soak

OPEN: Final = "PLAINTEXT"
SCRAM, MUTUAL, EXPIRED, LOGIN = "SECURE", "MUTUAL", "EXPIRED", "LOGIN"
PROTOCOLS: Final = {OPEN: "PLAINTEXT", SCRAM: "SASL_SSL", MUTUAL: "SSL", EXPIRED: "SSL", LOGIN: "SASL_PLAINTEXT"}
"""The listeners of a node: in the open, with passwords, with certificates on both ends, with an expired one, and with
passwords in the open."""


@frozen
class Secured:
    """A node with these listeners."""

    ports: Mapping[str, int]
    known: Authority
    strange: Authority

    def at(self, listener: str, host: str = HOST) -> str:
        """Return the address of a listener."""
        return f"{host}:{self.ports[listener]}"

    def file(self, **changes: str | None) -> str:
        """Return a client.properties for SCRAM; in names of changes, `_` stands for a dot, and None leaves one out."""
        return self._written(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": login_module(CLIENT, password_of(CLIENT)),
            },
            changes,
        )

    def mutual(self, **changes: str | None) -> str:
        """Return a client.properties for certificates."""
        keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.known.directory / f"{CLIENT}.pem")}
        return self._written({"security.protocol": "SSL", **keys}, changes)

    def _written(self, settings: Mapping[str, str], changes: Mapping[str, str | None]) -> str:
        trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.known.certificate)}
        changed = {name.replace("_", "."): value for name, value in changes.items()}
        merged: dict[str, str | None] = {**settings, **trusted, **changed}
        kept = {name: value for name, value in merged.items() if value is not None}
        return str(write_properties(self.known.directory / "client.properties", kept))


def settings_of(known: Authority) -> dict[str, str]:
    """Return the settings of a node for its listeners."""
    expired = as_pkcs12(known.issue("expired", HOST, days=-1), STORE_PASSWORD)
    late = "listener.name.expired.ssl"
    login = f"{MODULES}.scram.ScramLoginModule required;"
    return {
        **java_tls(known, known.issue(BROKER, HOST)),
        "sasl.enabled.mechanisms": MECHANISM,
        **{f"listener.name.{name.lower()}.{MECHANISM.lower()}.sasl.jaas.config": login for name in (SCRAM, LOGIN)},
        "listener.name.mutual.ssl.client.auth": "required",
        f"{late}.keystore.location": str(expired),
        f"{late}.keystore.type": "PKCS12",
        f"{late}.keystore.password": STORE_PASSWORD,
        f"{late}.key.password": STORE_PASSWORD,
    }


@asynccontextmanager
async def kraft(_: str, folder: Path, secured: Secured, settings: Mapping[str, str]) -> AsyncIterator[str]:
    """Run a node under KRaft, and return where it listens in the open."""
    more = {name: port for name, port in secured.ports.items() if name != OPEN}
    protocols = {**PROTOCOLS, "CONTROLLER": "PLAINTEXT"}
    named = {"listener.security.protocol.map": ",".join(f"{name}:{what}" for name, what in protocols.items())}
    async with kraft_cluster(folder, 1, settings={**settings, **named}, listeners=more) as cluster:
        yield cluster.bootstrap


@asynccontextmanager
async def with_zookeeper(
    zookeeper: str, folder: Path, secured: Secured, settings: Mapping[str, str]
) -> AsyncIterator[str]:
    """Run a broker in ZooKeeper mode that is the controller, too, and return where it listens in the open."""
    place = folder / "broker"
    await trio.Path(place).mkdir()
    named = {
        "listeners": ",".join(f"{name}://{secured.at(name)}" for name in PROTOCOLS),
        "listener.security.protocol.map": ",".join(f"{name}:{what}" for name, what in PROTOCOLS.items()),
        "inter.broker.listener.name": OPEN,
    }
    opening = real_broker(
        jars.folder(jars.RELEASE), f"{zookeeper}/{folder.name}", 1, place, {**settings, **named}, secured.ports[OPEN]
    )
    async with opening:
        yield secured.at(OPEN)


KINDS: Final = {RELEASE: kraft, jars.RELEASE: with_zookeeper}


@pytest.fixture(params=list(KINDS))
async def secured(request: pytest.FixtureRequest, zookeeper: str, tmp_path: Path) -> AsyncIterator[Secured]:
    """Give the test a node of a kind, with a user and a topic."""
    require_jars(request.param)
    known, strange = authority(tmp_path / "known"), authority(tmp_path / "strange")
    for user in (CLIENT, "late"):
        known.issue(user, HOST, days=30 if user == CLIENT else -1)
    strange.issue(CLIENT, HOST)
    node = Secured({name: free_port() for name in PROTOCOLS}, known, strange)
    async with KINDS[request.param](zookeeper, tmp_path, node, settings_of(known)) as bootstrap:
        await trio.to_thread.run_sync(add_user, bootstrap)
        yield evolve(node, ports={**node.ports, OPEN: int(bootstrap.rpartition(":")[2])})


def add_user(bootstrap: str) -> None:
    """Add the user of SCRAM, and a topic with a record."""
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(CLIENT, credential, password_of(CLIENT).encode())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for outcome in admin.alter_user_scram_credentials([user]).values():
        outcome.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"a record")
    assert producer.flush(30) == 0


async def told(*words: str) -> tuple[int, str]:
    """Run a command, and return its exit code with what it prints."""
    with trio.fail_after(60):
        done = await run_klamm(*words)
    return done.returncode, (done.stderr if done.returncode else done.stdout).decode()


async def test_the_files_of_kafkas_tools_are_those_of_the_commands(secured: Secured) -> None:
    for listener, file in ((SCRAM, secured.file), (MUTUAL, secured.mutual)):
        config = file()
        at = ("--bootstrap-server", secured.at(listener), "--command-config", config)
        tools = KafkaTools(jars.folder(jars.RELEASE), secured.at(listener))
        assert await tools.run("kafka-topics", "--command-config", config, "--list") == (0, "orders")
        code, listed = await told("topic", "list", "-o", "json", *at)
        assert (code, [row["topic"] for row in json.loads(listed)]) == (0, ["orders"]), listed
        code, found = await told("log-dirs", "describe", "--topic-list", "orders", "-o", "json", *at)
        [broker] = json.loads(found)
        assert [log["bytes"] > 0 for one in broker["log_dirs"] for log in one["logs"]] == [True]
        assert (await told("config", "describe", "--entity-type", "brokers", "--entity-name", "1", *at))[0] == 0
        assert (await told("state", "dump", *at))[0] == 0


async def test_key_stores_of_java_are_those_of_kafkas_tools(secured: Secured) -> None:
    """Certificates on both ends, from files that keytool has made, with a password for each of them and the key."""
    if shutil.which("keytool") is None:
        pytest.skip("no keytool to make key stores: apt-get install openjdk-17-jre-headless")
    keys = as_jks(secured.known.directory / f"{CLIENT}.pem", STORE_PASSWORD, "of-the-key")
    trusted = trusted_as_jks(secured.known.certificate, password=STORE_PASSWORD)
    of_keys = {"location": str(keys), "type": "JKS", "password": STORE_PASSWORD}
    of_authorities = {"location": str(trusted), "type": "JKS", "password": STORE_PASSWORD}
    settings = {
        **{f"ssl_keystore_{name}": value for name, value in of_keys.items()},
        **{f"ssl_truststore_{name}": value for name, value in of_authorities.items()},
    }
    config = secured.mutual(**settings, ssl_key_password="of-the-key")  # noqa: S106  of a file of this test
    tools = KafkaTools(jars.folder(jars.RELEASE), secured.at(MUTUAL))
    assert await tools.run("kafka-topics", "--command-config", config, "--list") == (0, "orders")
    at = ("--bootstrap-server", secured.at(MUTUAL), "--command-config", config)
    code, listed = await told("topic", "list", "-o", "json", *at)
    assert (code, [row["topic"] for row in json.loads(listed)]) == (0, ["orders"]), listed
    secured.mutual(**settings)
    code, said = await told("topic", "list", *at)
    cure = "its key has another password: check ssl.key.password"
    assert (code, said) == (1, f"Error: --command-config: ssl.keystore.location: cannot use {keys}: {cure}\n")


WRONG: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
)
JAAS, KEYS = "sasl_jaas_config", "ssl_keystore_location"
NAME_SECURITY: Final = ": name the security of the cluster with --command-config"
CHECK_KEYS: Final = f"check ssl.keystore.location{NAME_SECURITY}"
IS_TLS: Final = f"the other end speaks TLS, and this end does not: check security.protocol{NAME_SECURITY}"
IS_OPEN: Final = (
    f"it ended the connection in the middle of a TLS handshake: check the port and security.protocol{NAME_SECURITY}"
)
REFUSED: Final = "it refuses our certificate (it is not accepted there"


def mistakes(secured: Secured) -> Iterator[tuple[str, str | None, str]]:
    """Yield wrong ways to connect: the address, the file if there is one, and what has to be said of it."""
    scram, mutual = secured.at(SCRAM), secured.at(MUTUAL)
    for user in (CLIENT, "bob"):
        file = secured.file(**{JAAS: login_module(user, "wrong")})
        yield scram, file, f"the login of {user} at {scram} by SCRAM-SHA-512 failed ({WRONG}): check sasl.jaas.config"
    others = secured.file(sasl_mechanism="SCRAM-SHA-256")
    yield scram, others, f"{scram} does not offer SCRAM-SHA-256: set sasl.mechanism to one of SCRAM-SHA-512"
    unknown = secured.file(ssl_truststore_location=str(secured.strange.certificate))
    no_authority = "no authority of ssl.truststore.location has signed its certificate"
    yield scram, unknown, f"cannot connect to {scram}: {no_authority}{NAME_SECURITY}"
    nothing = secured.mutual(ssl_keystore_location=None, ssl_keystore_type=None)
    yield mutual, nothing, f"cannot connect to {mutual}: {REFUSED}, or there is none): {CHECK_KEYS}"
    for folder, name in ((secured.known.directory, "late"), (secured.strange.directory, CLIENT)):
        file = secured.mutual(**{KEYS: str(folder / f"{name}.pem")})
        yield mutual, file, f"cannot connect to {mutual}: {REFUSED}): {CHECK_KEYS}"
    expired = secured.at(EXPIRED)
    yield expired, secured.mutual(), f"cannot connect to {expired}: its certificate has expired{NAME_SECURITY}"
    named = secured.at(SCRAM, "localhost")
    not_for = "its certificate is not for localhost: check ssl.endpoint.identification.algorithm"
    yield named, secured.file(), f"cannot connect to {named}: {not_for}{NAME_SECURITY}"


def wrong_protocols(secured: Secured) -> Iterator[tuple[str, str | None, str]]:
    """Yield each protocol at each listener that has another one, and none at all."""
    keys = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(secured.known.directory / f"{CLIENT}.pem")}
    listeners = {secured.at(name): theirs for name, theirs in PROTOCOLS.items() if name != EXPIRED}
    for (address, theirs), ours in product(listeners.items(), listeners.values()):
        if ours != theirs:
            yield address, secured.file(security_protocol=ours, **keys), mismatch(address, ours, theirs)
    for address, theirs in listeners.items():
        if theirs != "PLAINTEXT":
            yield address, None, mismatch(address, "PLAINTEXT", theirs)


def mismatch(address: str, ours: str, theirs: str) -> str:
    """Return what has to be said of two protocols that differ."""
    if "SSL" in theirs and "SSL" not in ours:
        return f"cannot connect to {address}: {IS_TLS}"
    if "SSL" in ours and "SSL" not in theirs:
        return f"cannot connect to {address}: {IS_OPEN}"
    if ours.startswith("SASL"):
        return f"{address} does not use SASL on this listener: set security.protocol to PLAINTEXT or SSL"
    return (
        f"{address} wants a login by SASL ({MECHANISM}): set security.protocol to {theirs}, and sasl.mechanism and "
        "sasl.jaas.config, in the file of --command-config"
    )


async def test_what_is_refused_is_named_in_one_line(secured: Secured) -> None:
    said, expected = [], []
    for address, file, text in chain(mistakes(secured), wrong_protocols(secured)):
        config = () if file is None else ("--command-config", file)
        code, line = await told("topic", "list", "--timeout", "5", "--bootstrap-server", address, *config)
        said.append(f"{code} {line}")
        expected.append(f"1 Error: {text}\n")
    assert "".join(said) == "".join(expected)
