"""Certificates for tests of TLS, made by the openssl command: an authority, and certificates that it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from attrs import frozen

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@frozen
class Authority:
    """An authority, whose certificate is `ca.pem` in its directory."""

    directory: Path

    @property
    def certificate(self) -> Path:
        return self.directory / "ca.pem"

    def issue(self, name: str, host: str) -> Path:
        """Return a PEM file with a key and its certificate, which names a host by its IP address."""
        key, request, certificate = (self.directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName=IP:{host}\n")
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        signed_by = ("-CA", self.certificate, "-CAkey", self.directory / "ca.key", "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *signed_by, "-out", certificate, "-extfile", extensions)
        both = self.directory / f"{name}.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        return both


def authority(directory: Path) -> Authority:
    """Make a new authority."""
    directory.mkdir(parents=True, exist_ok=True)
    key, certificate = directory / "ca.key", directory / "ca.pem"
    _openssl("req", "-x509", *_NEW_KEY, "-keyout", key, "-out", certificate, "-subj", "/CN=tests")
    return Authority(directory)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
