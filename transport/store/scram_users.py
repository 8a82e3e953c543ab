"""The credentials of SCRAM that Kafka keeps in `/config/users/NAME`, written by `kafka-configs --alter`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import quote

from attrs import frozen

from transport.security.errors import SecurityError
from transport.security.scram import MAX_ITERATIONS, ScramCredential
from transport.store import fields, formats
from transport.store.fields import UndecodableZnode
from transport.store.protocol import MetadataStore, StoreError

USER_CONFIGS: Final = "/config/users"

_KEYS: Final = frozenset({"salt", "stored_key", "server_key", "iterations"})
_ITERATIONS: Final = re.compile(r"[0-9]{1,6}")
MAX_NAME: Final = 1_000
NO_NODES: Final = frozenset({"", ".", ".."})


@frozen
class ScramUsers:
    """The users of a cluster. A user's znode is read at each login, so that a change counts from the next one on."""

    store: MetadataStore

    async def credential_of(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential; None if there is none. Raises SecurityError if it cannot be read."""
        if user in NO_NODES or len(user) > MAX_NAME:
            return None
        path = user_path(user)
        try:
            [znode] = await self.store.read([path])
            return None if znode is None else decode_credential(path, znode.data, mechanism)
        except (StoreError, UndecodableZnode) as error:
            raise SecurityError(f"the credential of {user[:100]!r} cannot be read now: {error}") from None


def user_path(user: str) -> str:
    """Return the path of a user's settings, whose name is encoded as in a URL."""
    return f"{USER_CONFIGS}/{quote(user, safe='*').replace('*', '%2A').replace('~', '%7E')}"


def encode_credential(credential: ScramCredential) -> str:
    """Return a credential as the value of a user's setting, whose name is that of the mechanism."""
    parts = {
        "salt": _base64(credential.salt),
        "stored_key": _base64(credential.stored_key),
        "server_key": _base64(credential.server_key),
        "iterations": str(credential.iterations),
    }
    return ",".join(f"{name}={value}" for name, value in parts.items())


def decode_credential(path: str, data: bytes, mechanism: str) -> ScramCredential | None:
    """Return the credential in a user's znode; None if it has none of the mechanism. Raises UndecodableZnode."""
    fields.require_readable(path, data)
    text = formats.decode_config(path, data).get(mechanism)
    if text is None:
        return None
    parts = {name: value for name, _, value in (part.partition("=") for part in text.split(","))}
    iterations = parts.get("iterations", "")
    if parts.keys() != _KEYS or not _ITERATIONS.fullmatch(iterations) or not 0 < int(iterations) <= MAX_ITERATIONS:
        raise UndecodableZnode(path, f"{mechanism} is no credential")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
    except (binascii.Error, ValueError):
        raise UndecodableZnode(path, f"{mechanism} is no credential: a part is not base64") from None
    return ScramCredential(salt, stored_key, server_key, int(iterations))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
