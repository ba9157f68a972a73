"""An authority and a certificate signed by it, made at the start of a node for tests and trials.

The authority's key is never written; that of the certificate only for the moment in which it is loaded.
"""

from __future__ import annotations

import datetime
import socket
import ssl
import tempfile
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAYS: Final = 30
_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
_EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})


class SelfSignedCertificate:
    """The authority's certificate in a file, and the certificate of this node."""

    def __init__(self, names: Iterable[str], ca_file: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rejoin-tls-")
        self.ca_location = ca_file or str(Path(self._folder.name) / "ca.pem")
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        issuer, valid = _name("Rejoin"), sorted({*_ALWAYS, socket.gethostname(), *names} - _EVERY_ADDRESS)
        ca = (
            _certificate(issuer, issuer, ca_key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        self._own = (
            _certificate(_name("localhost"), issuer, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in valid]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                critical=False,
            )
            .sign(ca_key, hashes.SHA256())
        )
        self._key = key
        try:
            Path(self.ca_location).write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        except OSError as problem:
            self.remove()
            raise ValueError(f"--tls-ca-file {ca_file}: {problem.strerror}; expected a file to write") from None

    def load_into(self, context: ssl.SSLContext) -> None:
        """Give a context the certificate and its key."""
        pem = serialization.Encoding.PEM
        own = Path(self._folder.name) / "key.pem"
        own.touch(mode=0o600)
        own.write_bytes(
            self._key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            + self._own.public_bytes(pem)
        )
        try:
            context.load_cert_chain(own)
        finally:
            own.unlink()

    def remove(self) -> None:
        """Remove the temporary file of the authority's certificate."""
        self._folder.cleanup()


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
