"""Certificates for tests of TLS, made by openssl and keytool: an authority, and certificates that it signs."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

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


def short_lived(known: Authority, name: str, host: str, *, until_ms: int) -> Path:
    """Return a PEM file as an authority issues it; the certificate expires at a time in milliseconds since 1970."""
    signer = x509.load_pem_x509_certificate(known.certificate.read_bytes())
    signing = load_pem_private_key((known.directory / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    end = datetime.fromtimestamp(until_ms // 1000, UTC)
    builder = (
        x509.CertificateBuilder()
        .issuer_name(signer.subject)
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
    )
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    signed = builder.sign(signing, SHA256())
    both = known.directory / f"{name}.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    both.write_bytes(secret + signed.public_bytes(Encoding.PEM))
    return both


def as_pkcs12(pem: Path, password: str) -> Path:
    """Return a file in PKCS12 with what a PEM file has."""
    target = pem.with_suffix(".p12")
    what = () if b"PRIVATE KEY" in pem.read_bytes() else ("-nokeys",)
    _openssl("pkcs12", "-export", *what, "-in", pem, "-out", target, "-passout", f"pass:{password}")
    return target


def as_jks(pem: Path, password: str, key_password: str | None = None) -> Path:
    """Return a file in JKS with the key of a PEM file, whose password is the store's unless it has one of its own."""
    target = pem.with_suffix(".jks")
    source = ("-srckeystore", as_pkcs12(pem, password), "-srcstoretype", "PKCS12", "-srcstorepass", password)
    own = ("-srcalias", "1", "-destalias", pem.stem, "-destkeypass", key_password or password)
    store = ("-destkeystore", target, "-deststoretype", "JKS", "-deststorepass", password)
    _keytool("-importkeystore", *source, *own, *store)
    return target


def trusted_as_jks(*pems: Path, password: str) -> Path:
    """Return a file in JKS that trusts authorities."""
    target = pems[0].with_suffix(".trust.jks")
    for number, pem in enumerate(pems):
        chosen = ("-noprompt", "-file", pem, "-alias", f"ca-{number}", "-keystore", target)
        _keytool("-importcert", *chosen, "-storetype", "JKS", "-storepass", password)
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


def _keytool(*arguments: str | Path) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True)
