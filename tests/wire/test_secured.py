"""Our own wire with TLS and a login: services and their clients need to know nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import define, field
from structlog.testing import capture_logs
from structlog.typing import EventDict

from tests.kit.certificates import Authority, authority
from tests.kit.token_endpoint import CLIENT as CLIENT_ID, SECRET, token_endpoint
from transport.messages import ProduceRequest, ProduceResponse
from transport.network import TcpNetwork
from transport.security import sasl, scram
from transport.security.principal import ANONYMOUS, Principal
from transport.security.scram import ScramCredential
from transport.security.settings import security_of
from transport.wire import Admit, Caller, Handler, Handlers, NoToken, Untrusted, frame, open_connection, serve
from transport.wire.envelope import RequestEnvelope
from transport.wire.secured import beneath, secured

HOST: Final = "127.0.0.1"
MODULES: Final = "org.apache.kafka.common.security"
ALICE: Final = Principal("User", "alice")


async def credential_of(mechanism: str, user: str) -> ScramCredential | None:
    return scram.credential(scram.MECHANISMS[mechanism], "alice-secret", b"salt", 4096) if user == "alice" else None


def login(mechanism: str, user: str = "alice", password: str = "alice-secret") -> dict[str, str]:  # noqa: S107
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    options = f'username="{user}" password="{password}"'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{MODULES}.{module} required {options};"}


SERVER: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(sasl.MECHANISMS),
    "plain.sasl.jaas.config": f'{MODULES}.plain.PlainLoginModule required user_alice="alice-secret";',
}
WRONG: Final = "(The user name or the password is wrong): check sasl.mechanism and sasl.jaas.config"
CLIENT: Final = {"security.protocol": "SASL_PLAINTEXT"}


@define
class Service:
    """A service that remembers who has called, and what it has logged."""

    port: int
    logs: list[EventDict]
    callers: list[Caller] = field(factory=list)

    async def call(self, settings: Mapping[str, str]) -> None:
        network = secured(TcpNetwork(), security_of(settings), serves=False)
        async with open_connection(network, HOST, self.port, client_id="me") as connection:
            assert await connection.call(ProduceRequest("t", 0, 1, 0, (b"abc",))) == ProduceResponse(3)

    async def refuse(self, settings: Mapping[str, str]) -> tuple[str, str]:
        """Return the lines in which an attempt ends, the client's and the server's."""
        self.logs.clear()
        with pytest.raises(Untrusted) as caught:
            await self.call(settings)
        with trio.fail_after(5):
            while not self.logs:
                await trio.sleep(0.01)
        [line] = self.logs
        assert "secret" not in f"{caught.value}{line}"
        return str(caught.value).replace(f"{HOST}:{self.port}", "HOST"), line["reason"]


@asynccontextmanager
async def running(settings: Mapping[str, str]) -> AsyncIterator[Service]:
    callers: list[Caller] = []

    async def produce(request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(sum(map(len, request.values)))

    def admit(caller: Caller, _: object, handler: Handler) -> Handler:
        callers.append(caller)
        return handler

    admission: Admit = admit
    network = secured(TcpNetwork(), security_of(settings), credential_of)
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            handlers: Handlers = {ProduceRequest: produce}
            port = await nursery.start(lambda **on: serve(network, handlers, HOST, 0, admit=admission, **on))
            yield Service(port, logs, callers)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
async def test_who_logs_in_is_known_from_then_on(mechanism: str) -> None:
    async with running(SERVER) as service:
        await service.call(CLIENT | login(mechanism))
        assert {caller.principal for caller in service.callers} == {ALICE}
        assert {caller.address for caller in service.callers} == {HOST}
        assert service.logs == []


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
async def test_who_does_not_is_told_why_and_sent_away(mechanism: str) -> None:
    async with running(SERVER) as service:
        for user, password in (("alice", "wrong-secret"), ("mallory", "alice-secret")):
            assert await service.refuse(CLIENT | login(mechanism, user, password)) == (
                f"cannot connect to HOST: the login of {user} by {mechanism} failed {WRONG}",
                f"the password is wrong, or there is no user {user!r}",
            )
        needed = "a login by SASL is needed here: set security.protocol to SASL_PLAINTEXT or SASL_SSL"
        assert await service.refuse({}) == (f"cannot connect to HOST: {needed}", needed)
        assert service.callers == []


async def test_a_mechanism_that_is_not_offered_is_refused() -> None:
    async with running({**SERVER, "sasl.enabled.mechanisms": "SCRAM-SHA-512"}) as service:
        told, logged = await service.refuse(CLIENT | login("PLAIN"))
        assert logged == "the mechanism 'PLAIN' is not enabled here: use one of SCRAM-SHA-512"
        assert logged in told


async def test_tokens_are_not_accepted_here_and_a_missing_one_is_a_fault_that_may_pass() -> None:
    with token_endpoint() as endpoint:
        endpoint.has_expires_in, endpoint.lifetime = True, 1e-9
        module = (
            f'{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId="{CLIENT_ID}" clientSecret="{SECRET}";'
        )
        tokens = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": endpoint.url}
        network = secured(TcpNetwork(), security_of(CLIENT | tokens | {"sasl.jaas.config": module}), serves=False)
        async with running(SERVER) as service:
            opening = partial(open_connection, network, HOST, service.port, client_id="me")
            with pytest.raises(
                Untrusted, match=r"'OAUTHBEARER' is not enabled here: use one of PLAIN, SCRAM-SHA-256, "
            ):
                async with opening():
                    pass
            endpoint.answer = 503, b""
            with pytest.raises(NoToken, match=f"^cannot get a token from {endpoint.url}: it answers 503$"):
                async with opening():
                    pass


async def test_a_login_that_nobody_asks_for_is_told_so() -> None:
    async with running({}) as service:
        with pytest.raises(Untrusted, match="it does not use SASL: set security"):
            await service.call(CLIENT | login("PLAIN"))
        await service.call({})
        assert {caller.principal for caller in service.callers} == {ANONYMOUS}


async def test_what_is_no_login_is_sent_away() -> None:
    async with running(SERVER) as service:
        for data in (b"GET / HTTP/1.1\r\n\r\n", frame(b"\xc1"), frame(RequestEnvelope(17, 0, 1, "", b"\xc1").pack())):
            service.logs.clear()
            async with await TcpNetwork().connect(HOST, service.port) as stream:
                await stream.send_all(data)
                assert await stream.receive_some() == b""
            assert service.logs[0]["reason"].startswith("it does not send a login (")


@pytest.fixture
def known(tmp_path: Path) -> Authority:
    return authority(tmp_path / "known")


async def test_tls_and_a_login_together(known: Authority) -> None:
    keys = {"security.protocol": "SASL_SSL", "ssl.keystore.location": str(known.issue("server", HOST))}
    trust = {"security.protocol": "SASL_SSL", "ssl.truststore.location": str(known.certificate)}
    async with running(SERVER | keys) as service:
        await service.call(trust | login("SCRAM-SHA-512"))
        assert {caller.principal for caller in service.callers} == {ALICE}
        service.callers.clear()
        unknown = authority(known.directory / "unknown")
        distrust = trust | {"ssl.truststore.location": str(unknown.certificate)}
        told, _ = await service.refuse(distrust | login("PLAIN"))
        assert told == "cannot connect to HOST: no authority of ssl.truststore.location has signed its certificate"
        assert service.callers == []


async def test_a_certificate_is_a_name(known: Authority) -> None:
    both = {"security.protocol": "SSL", "ssl.truststore.location": str(known.certificate)}
    keys = {"ssl.keystore.location": str(known.issue("server", HOST)), "ssl.client.auth": "required"}
    async with running(both | keys) as service:
        await service.call(both | {"ssl.keystore.location": str(known.issue("bob", HOST))})
        assert {caller.principal for caller in service.callers} == {Principal("User", "CN=bob")}


def test_what_is_beneath_has_no_login_of_ours() -> None:
    tcp = TcpNetwork()
    assert beneath(tcp) == (tcp, None, None)
    network = secured(tcp, security_of(CLIENT | login("PLAIN")))
    under, with_what, at = beneath(network)
    assert under is tcp
    assert with_what is not None
    assert at is not None
    assert with_what.login.user == "alice"
    assert at.mechanisms == ("PLAIN",)
