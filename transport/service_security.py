"""The security of a service's connections: the file of properties that `security.config` names."""

from __future__ import annotations

from pathlib import Path

from transport.network import Network
from transport.security.errors import InvalidSecurity
from transport.security.settings import OPEN, Security, read_security
from transport.service_settings import ServiceSettings
from transport.settings import InvalidSetting
from transport.store.protocol import MetadataStore
from transport.store.scram_users import ScramUsers
from transport.wire.secured import secured


def security_of_service(settings: ServiceSettings) -> Security:
    """Return the security that a service's settings ask for. Raises InvalidSetting."""
    if settings.security_config is None:
        return OPEN
    try:
        return read_security(Path(settings.security_config))
    except InvalidSecurity as error:
        raise InvalidSetting(f"security.config: {error}") from None


def secured_for_service(network: Network, security: Security, store: MetadataStore) -> Network:
    """Return a network for a service, whose clients' credentials of SCRAM are in a store. Raises InvalidSetting."""
    try:
        return secured(network, security, ScramUsers(store).credential_of)
    except InvalidSecurity as error:
        raise InvalidSetting(f"security.config: {error}") from None
