"""Key stores and trust stores in Java's own format, as keytool writes them."""

from __future__ import annotations

import shutil
import ssl
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve, frozen

from tests.kit.certificates import Authority, as_jks, authority, trusted_as_jks
from tests.security.test_tls import HOST, PASSWORD, REQUIRED, talk, tls
from transport.security.errors import InvalidSecurity
from transport.security.key_stores import Store
from transport.security.principal import Principal
from transport.security.tls import Tls

pytestmark = pytest.mark.skipif(
    shutil.which("keytool") is None, reason="no keytool to make key stores: apt-get install openjdk-17-jre-headless"
)
OWN: Final = "of-the-key €"
DAMAGED: Final = "the file is damaged or cut short: copy it again, `keytool -list` checks it"
WRONG: Final = "the password is wrong, or it is damaged: check {}.password"


@frozen
class Stores:
    """The stores of both ends."""

    known: Authority
    keys: Store
    trusted: Store


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    known = authority(tmp_path_factory.mktemp("known"))
    keys = as_jks(known.issue("server", HOST), PASSWORD)
    trusted = trusted_as_jks(known.certificate, password=PASSWORD)
    return Stores(
        known,
        Store("ssl.keystore", str(keys), password=PASSWORD),
        Store("ssl.truststore", str(trusted), password=PASSWORD),
    )


@pytest.mark.parametrize("declared", [None, "jks", "PKCS12"])
async def test_both_ends_use_them(stores: Stores, declared: str | None) -> None:
    """Java reads JKS from a store of type PKCS12, which is its default, and so do we."""
    keys, trusted = evolve(stores.keys, type=declared), evolve(stores.trusted, type=declared)
    both = Tls(keys, trusted, client_auth=REQUIRED)
    assert (await talk(both, both)).heard == [(Principal("User", "CN=server"), b"hello")]


async def test_a_trust_store_needs_no_password_and_may_have_several_authorities(stores: Stores, tmp_path: Path) -> None:
    other = authority(tmp_path / "other")
    file = trusted_as_jks(other.certificate, stores.known.certificate, password=PASSWORD)
    client = Tls(truststore=Store("ssl.truststore", str(file)))
    for known in (stores.known, other):
        pem = known.issue("either", HOST)
        assert (await talk(tls(pem, None), client)).client_told == ""


def test_a_key_with_a_password_of_its_own(stores: Stores) -> None:
    store = evolve(stores.keys, location=str(as_jks(stores.known.issue("own", HOST), PASSWORD, OWN)))
    assert isinstance(Tls(store, key_password=OWN).server_context(), ssl.SSLContext)
    # As in Java, the password of the store only guards against changes.
    assert isinstance(Tls(evolve(store, password=None), key_password=OWN).server_context(), ssl.SSLContext)
    for wrong in (None, "wrong"):
        with pytest.raises(InvalidSecurity, match=r"its key has another password: check ssl.key.password"):
            Tls(store, key_password=wrong).server_context()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda store: evolve(store, password="wrong"), WRONG.format("ssl.keystore")),  # noqa: S106
        (lambda store: evolve(store, password=None), "its key has a password: set ssl.keystore.password"),
        (lambda store: evolve(store, type="PEM"), "this is no file in PEM: check ssl.keystore.type"),
        (lambda store: evolve(store, type="BCFKS"), "BCFKS is not supported: keytool -importkeystore -srckeystore "),
    ],
)
def test_what_is_wrong_with_a_key_store_is_told(stores: Stores, change: Callable[[Store], Store], fault: str) -> None:
    with pytest.raises(InvalidSecurity) as caught:
        Tls(change(stores.keys)).server_context()
    assert str(caught.value).startswith(f"ssl.keystore.location: cannot use {stores.keys.location}: {fault}")
    assert PASSWORD not in str(caught.value)


def test_what_is_wrong_with_a_trust_store_is_told(stores: Stores) -> None:
    with pytest.raises(InvalidSecurity, match=WRONG.format("ssl.truststore")):
        Tls(truststore=evolve(stores.trusted, password="wrong")).client_context()  # noqa: S106
    with pytest.raises(InvalidSecurity, match="it has no private key with its certificate"):
        Tls(evolve(stores.trusted, name="ssl.keystore")).server_context()


def test_jceks_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "a.jceks"
    file.write_bytes(b"\xce\xce\xce\xce\0\0\0\x02")
    with pytest.raises(InvalidSecurity) as caught:
        Tls(Store("ssl.keystore", str(file), type="JKS")).server_context()
    assert str(caught.value) == (
        f"ssl.keystore.location: cannot use {file}: JCEKS is not supported: keytool -importkeystore -srckeystore {file}"
        " -srcstoretype JCEKS -destkeystore NEW.p12 -deststoretype PKCS12 converts it; set ssl.keystore.type=PKCS12"
    )


def test_a_key_without_its_library_is_told_with_the_cure(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    assert isinstance(Tls(truststore=stores.trusted).client_context(), ssl.SSLContext)
    with pytest.raises(InvalidSecurity, match=r"a key in JKS takes .* pip install 'klamm\[pkcs12\]', or convert"):
        Tls(stores.keys).server_context()


# --- damage -----------------------------------------------------------------------------------------------------


def damaged(content: bytes) -> Iterator[bytes]:
    """Yield the content cut before each byte but those of the magic, and with each byte changed."""
    yield from (content[:at] for at in range(4, len(content)))
    yield from (content[:at] + bytes([byte ^ 0xFF]) + content[at + 1 :] for at, byte in enumerate(content))
    yield content + b"\0"


@pytest.mark.parametrize("name", ["ssl.keystore", "ssl.truststore"])
def test_each_byte_cut_or_changed_is_told_in_one_line(stores: Stores, tmp_path: Path, name: str) -> None:
    whole = stores.keys if name == "ssl.keystore" else stores.trusted
    assert whole.location is not None
    file = tmp_path / "damaged.jks"
    store = evolve(whole, location=str(file))
    faults = set()
    for content in damaged(Path(whole.location).read_bytes()):
        file.write_bytes(content)
        with pytest.raises(InvalidSecurity) as caught:
            use(stores, store)
        begin = f"{name}.location: cannot use {file}: "
        assert str(caught.value).startswith(begin)
        faults.add(str(caught.value).removeprefix(begin))
    no_magic = "this is no file in PEM or PKCS12 or JKS: check {}.type"
    assert faults == {DAMAGED, WRONG.format(name), no_magic.format(name)}


@pytest.mark.parametrize("name", ["ssl.keystore", "ssl.truststore"])
def test_damage_that_no_password_would_reveal_ends_in_one_line_as_well(
    stores: Stores, tmp_path: Path, name: str
) -> None:
    """Without the password of the store changed certificates, names and times may go unnoticed, as in Java."""
    whole = stores.keys if name == "ssl.keystore" else stores.trusted
    assert whole.location is not None
    file = tmp_path / "damaged.jks"
    store = evolve(whole, location=str(file), password=None)
    faults = []
    for content in islice(damaged(Path(whole.location).read_bytes()), None, None, 3):
        file.write_bytes(content)
        try:
            use(stores, store, PASSWORD)
        except InvalidSecurity as error:
            faults.append(str(error))
    assert len(faults) > 100
    assert all(fault.startswith(f"{name}.location: cannot use {file}: ") and "\n" not in fault for fault in faults)


def use(stores: Stores, store: Store, key_password: str | None = None) -> None:
    """Make a context with a store in place of one of these; without a trust store, the system's would be read."""
    if store.name == stores.keys.name:
        Tls(store, stores.trusted, key_password).server_context()
    else:
        Tls(truststore=store).client_context()
