"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class KeyPair:
    """PEM files: a certificate, its key, and a keystore with both."""

    certificate: Path
    key: Path
    keystore: Path


class Authority:
    """Signs certificates for 127.0.0.1 and localhost, of servers and of clients."""

    def __init__(self, folder: Path, name: str = "Test CA") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name.from_rfc4514_string(f"CN={name}")
        own = self._builder(self._name, self._key.public_key(), 1).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.location = folder / f"{name.replace(' ', '-')}.pem"
        self.location.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(_PEM))

    def issue(self, subject: str, *, days: int = 1, password: str = "") -> KeyPair:
        """A certificate for a subject as RFC 4514 writes it; a negative number of days has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(x509.Name.from_rfc4514_string(subject), key.public_key(), days)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
            .public_bytes(_PEM)
        )
        encryption = (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        )
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, encryption)
        stem = f"{len(list(self._folder.iterdir()))}"
        found = KeyPair(*(self._folder / f"{stem}-{kind}.pem" for kind in ("certificate", "key", "keystore")))
        found.certificate.write_bytes(certificate)
        found.key.write_bytes(private)
        found.keystore.write_bytes(private + certificate)
        return found

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        begin, end = sorted((now + datetime.timedelta(days=days), now - datetime.timedelta(days=1, hours=days < 0)))
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin - datetime.timedelta(days=3))
            .not_valid_after(end)
        )
