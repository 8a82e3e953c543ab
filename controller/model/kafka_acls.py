"""The ACLs in a cluster of Kafka's brokers: they apply to our znodes too, and may forbid the office."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from transport.store.acls import CREATE, DELETE, Acl, identities, is_open

_REPLACING: Final = CREATE | DELETE


def is_protected(epoch: Acl | None, brokers: Mapping[int, Acl]) -> bool | None:
    """Return whether the brokers' znodes are theirs alone, so that ours must be; None if there is no sign.

    A broker's registration shows its present settings. `/controller_epoch` may be older, and counts without brokers.
    An open one decides: a znode of ours would be closed to a broker that has no identity.
    """
    signs = [*brokers.values()] or ([] if epoch is None else [epoch])
    return not any(map(is_open, signs)) if signs else None


def shut_out(root: Acl | None, brokers: Mapping[int, Acl]) -> str:
    """Return the reason why a broker could not replace our `/controller`, empty if there is none.

    ZooKeeper asks the parent's ACL whether a child may be created and deleted.
    """
    if root is None or is_open(root, _REPLACING):
        return ""
    allowed = identities(root, _REPLACING)
    for broker_id, acl in brokers.items():
        known = identities(acl) - {"world:anyone"}
        if not known & allowed:
            return (
                f"broker {broker_id} could not delete Klamm's /controller: the ACL of the chroot lets only"
                f" {', '.join(sorted(allowed)) or 'nobody'} do so, and this broker is"
                f" {', '.join(sorted(known)) or 'known by no identity'}: let the brokers create and delete there"
            )
    return ""
