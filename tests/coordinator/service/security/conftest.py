"""Certificates for the listeners of these tests, made once."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.certificates import Authority, KeyPair


@dataclass(frozen=True)
class Certificates:
    """A server's, a client's, and one of a client that another authority has signed."""

    authority: Authority
    server: KeyPair
    client: KeyPair
    expired: KeyPair
    foreign: KeyPair

    def context(self, client: KeyPair | None = None) -> ssl.SSLContext:
        """A client's context, which trusts the authority and may show a certificate."""
        context = ssl.create_default_context(cafile=self.authority.location)
        if client is not None:
            context.load_cert_chain(client.keystore)
        return context


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder: Path = tmp_path_factory.mktemp("certificates")
    authority, other = Authority(folder), Authority(folder, "Other CA")
    return Certificates(
        authority,
        authority.issue("CN=localhost"),
        authority.issue("CN=alice,OU=Shop,O=Example"),
        authority.issue("CN=alice", days=-1),
        other.issue("CN=mallory"),
    )
