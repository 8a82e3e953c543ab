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

    def issue(self, name: str, host: str, *, days: int = 30) -> Path:
        """Return a PEM file with a key and its certificate, which names a host by its IP address.

        The certificate is valid for some days from now; of a negative number of days, it has expired.
        """
        key, request, certificate = (self.directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName=IP:{host}\n")
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        signed_by = ("-CA", self.certificate, "-CAkey", self.directory / "ca.key", "-CAcreateserial")
        _openssl(
            "x509", "-req", "-in", request, *signed_by, "-out", certificate, "-extfile", extensions, "-days", str(days)
        )
        both = self.directory / f"{name}.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        return both


def as_pkcs12(pem: Path, password: str) -> Path:
    """Return a file in PKCS12 with what a PEM file has."""
    target = pem.with_suffix(".p12")
    what = () if b"PRIVATE KEY" in pem.read_bytes() else ("-nokeys",)
    _openssl("pkcs12", "-export", *what, "-in", pem, "-out", target, "-passout", f"pass:{password}")
    return target


def encrypted(pem: Path, password: str) -> Path:
    """Return a PEM file with an encrypted key and its certificate, made of one with a key that is not."""
    key, both = pem.with_suffix(".key.enc"), pem.with_suffix(".enc.pem")
    _openssl("pkcs8", "-topk8", "-in", pem, "-out", key, "-passout", f"pass:{password}")
    both.write_bytes(key.read_bytes() + pem.with_suffix(".crt").read_bytes())
    return both


def authority(directory: Path) -> Authority:
    """Make a new authority."""
    directory.mkdir(parents=True, exist_ok=True)
    key, certificate = directory / "ca.key", directory / "ca.pem"
    _openssl("req", "-x509", *_NEW_KEY, "-keyout", key, "-out", certificate, "-subj", "/CN=tests")
    return Authority(directory)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
