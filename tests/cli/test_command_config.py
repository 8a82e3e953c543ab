"""Commands reach a secured cluster with the file that --command-config names."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from broker.config import BrokerConfig
from broker.reference.run import run_reference_broker
from tests.cli.shell import run_klamm
from tests.kit.secured_cluster import known_authority, let_in, properties
from tests.kit.service import Controllers
from transport.host import Host
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper

OPENING: Final = ("--timeout", "20")


async def told(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    with trio.fail_after(60):
        done = await run_klamm(*arguments, *OPENING, stdin=stdin)
    return done.returncode, (done.stderr if done.returncode else done.stdout).decode()


async def test_a_secured_cluster_from_end_to_end(
    controllers: Controllers, memory: MemoryZooKeeper, nursery: trio.Nursery, tmp_path: Path
) -> None:
    """The controller, the broker and the administrator log in as different users."""
    known = known_authority(tmp_path / "known")
    files = {user: str(properties(known, user)) for user in ("klamm", "broker", "alice")}
    async with memory.session() as store:
        await let_in(store)
        service = await controllers.start_active(security_config=files["klamm"])
        config = BrokerConfig(1, log_dir=tmp_path / "log", security_config=files["broker"])
        network, host = TcpNetwork(), Host()
        running = partial(run_reference_broker, config, store=store, network=network, host=host)
        broker = await nursery.start(running)
        at = ("--bootstrap-server", f"127.0.0.1:{service.port}")
        data = ("--bootstrap-server", f"127.0.0.1:{broker.port}")
        as_klamm, as_alice = (("--command-config", files[user]) for user in ("klamm", "alice"))
        create = ("topic", "create", "orders", "--partitions", "1", "--replication-factor", "1")
        code, said = await told(*create, *at, *as_alice)
        assert code == 1
        assert "User:alice needs Create on topic orders: ask who runs the cluster" in said
        assert (await told(*create, *at, *as_klamm))[0] == 0
        assert (await told("produce", "orders", *data, *as_klamm, stdin=b"one\ntwo\n"))[0] == 0
        assert await told("consume", "orders", *data, *as_klamm) == (0, "one\ntwo\n")
        code, said = await told("topic", "list", *at)
        assert (code, said.count("\n")) == (1, 1)
        assert said.startswith(f"Error: 127.0.0.1:{service.port} does not answer as a broker or controller does (")
        wrong = str(properties(known, "alice", "wrong"))
        code, said = await told("topic", "list", *at, "--command-config", wrong)
        assert code == 1
        assert "the login of alice by SCRAM-SHA-256 failed (The user name or the password is wrong): check" in said
        assert said.endswith(": name the security of the cluster with --command-config\n")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("command", [("topic", "list"), ("consume", "orders")])
async def test_a_file_that_cannot_be_used_is_told(command: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\n")
    code, said = await told(*command, "--command-config", str(file))
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"Error: --command-config: {file}: sasl.mechanism is not set: set it to one of PLAIN, ")
