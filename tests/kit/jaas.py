"""SASL for ZooKeeper's server and for brokers: the files and options of Java's authentication service."""

from __future__ import annotations

from pathlib import Path
from typing import Final

USER: Final = "kafka"
PASSWORD: Final = "it's the \\secret"  # noqa: S105  of the tests alone
CREDENTIALS: Final = f"{USER}:{PASSWORD}"

_SECTIONS: Final = """\
Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_{user}="{password}"; }};
Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username="{user}" password="{password}"; }};
"""


def java_options(directory: Path) -> str:
    """Return the value of JDK_JAVA_OPTIONS with which servers and brokers know `CREDENTIALS`."""
    file = directory / "jaas.conf"
    file.write_text(_SECTIONS.format(user=USER, password=PASSWORD.replace("\\", r"\\")))
    provider = "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    return f"{provider} -Djava.security.auth.login.config={file}"
