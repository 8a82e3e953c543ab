"""OAUTHBEARER on real brokers under KRaft, which end sessions after 20 s: tokens of 20 s through a long rollout."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from confluent_kafka import Producer

from tests.cli.rollout_place import moves_in_a_plan, write_plan
from tests.cli.rollout_runs import journal, running
from tests.cli.shell import Shell
from tests.kafka.cluster_security import write_properties
from tests.kafka.kraft_cluster import kraft_cluster
from tests.kafka.traffic import FLUSH_SECONDS
from tests.kit.token_endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("needs_kraft")]

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
MODULE: Final = f"{PACKAGE}.OAuthBearerLoginModule required"
LIFE_SECONDS: Final = 20
BROKER: Final = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="broker";',
    "connections.max.reauth.ms": str(LIFE_SECONDS * 1000),
}
"""Brokers that accept tokens without a signature, and that end each session."""

OF_PRODUCER: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=producer",
}
PARTITIONS: Final = 200
RECORDS_EACH: Final = 20
RECORD: Final = b"x" * 10_000
"""200 kB a partition, 40 MB in all."""

RATE: Final = 300_000
ROLLOUT_SECONDS: Final = 120
BEFORE, AFTER = [1, 2], [3, 2]
LIMITS: Final = ("--in-per-broker", "8", "--out-per-broker", "8", "--leaders-per-broker", "8")


def client_properties(file: Path, endpoint: TokenEndpoint, secret: str = SECRET) -> Path:
    """Write the file of a client of the endpoint."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.jaas.config": f'{MODULE} clientId="{CLIENT}" clientSecret="{secret}";',
    }
    return write_properties(file, settings)


def fill(bootstrap: str) -> None:
    """Write the same to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, **OF_PRODUCER})
    for number in range(PARTITIONS * RECORDS_EACH):
        producer.produce("orders", RECORD, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(FLUSH_SECONDS) == 0


async def until_registered(shell: Shell, count: int) -> None:
    """Wait until the brokers know each other."""
    with trio.fail_after(60):
        while len(json.loads(await shell("broker", "list", "-o", "json"))) < count:
            await trio.sleep(0.2)


async def test_tokens_are_renewed_through_a_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with token_endpoint() as endpoint:
        endpoint.lifetime = LIFE_SECONDS
        file = client_properties(tmp_path / "client.properties", endpoint)
        monkeypatch.setenv("KLAMM_COMMAND_CONFIG", str(file))
        async with kraft_cluster(tmp_path / "cluster", 3, settings=BROKER) as cluster:
            shell = Shell(cluster.bootstrap)
            await until_registered(shell, 3)
            await shell("topic", "create", "orders", "--replica-assignment", ",".join(["1:2"] * PARTITIONS))
            await trio.to_thread.run_sync(fill, cluster.bootstrap)
            plan = tmp_path / "plan"
            plan.mkdir()
            write_plan(plan / "plan.json", moves_in_a_plan([AFTER] * PARTITIONS, before=BEFORE))
            tokens, start = len(endpoint.given), trio.current_time()
            async with running(plan, cluster.bootstrap, *LIMITS, "--throttle", str(RATE)) as process:
                assert await process.wait() == 0
            seconds, tokens = trio.current_time() - start, len(endpoint.given) - tokens
            rows = json.loads(await shell("topic", "describe", "orders", "-o", "json"))
            assert [row["replicas"] for row in rows] == [AFTER] * PARTITIONS
            assert sum(len(entry["moves"]) for entry in journal(plan, "ended")) == PARTITIONS
            assert seconds >= ROLLOUT_SECONDS
            assert ROLLOUT_SECONDS / LIFE_SECONDS <= tokens <= seconds / (LIFE_SECONDS * 0.8) + 1
            sys.stdout.write(f"{tokens} tokens of {LIFE_SECONDS} s in {seconds:.0f} s\n")


async def test_a_refused_client_a_refused_token_and_a_missing_endpoint_are_told(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    async with kraft_cluster(tmp_path / "cluster", 1, settings=BROKER) as cluster:
        with token_endpoint() as endpoint:
            refused = partial(Shell(cluster.bootstrap), "broker", "list", "--command-config", str(file), fails=True)
            client_properties(file, endpoint, "wrong")
            assert await refused() == (
                f"Error: {endpoint.url} gives the client {CLIENT} no token (401 invalid_client: Bad credentials):"
                " check the id and the secret of the client\n"
            )
            client_properties(file, endpoint)
            endpoint.answer = 200, b'{"access_token":"opaque","expires_in":20}'
            told = await refused()
            assert told.startswith(f"Error: the login of {CLIENT} at {cluster.bootstrap} by OAUTHBEARER failed (")
            assert told.endswith("): compare its tokens (issuer, audience, scope, clock) with what brokers accept\n")
            assert "opaque" not in told
            assert told.count("\n") == 1
        assert await refused() == (
            f"Error: cannot get a token from {endpoint.url}: nothing listens there:"
            " check sasl.oauthbearer.token.endpoint.url\n"
        )
