"""A file that an option or a setting names is read up to a bound: /dev/zero is refused in one line."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from rejoin.client.commands.groups.parsing import read_plan
from rejoin.client.commands.setting_options import security_from
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.security.tls import load_authorities, load_certificate
from rejoin.coordinator.service.security.users import users_from
from rejoin.files import MOST_BYTES, check_size, read_text

ENDLESS = "/dev/zero"


def with_context(load: Callable[..., None], **settings: str) -> Callable[[], object]:
    return lambda: load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), Settings(**settings))  # type: ignore[arg-type]


READERS: dict[str, Callable[[], object]] = {
    "ssl.keystore.location": with_context(load_certificate, ssl_keystore_location=ENDLESS),
    "ssl.certificate.location": with_context(load_certificate, ssl_certificate_location=ENDLESS),
    "ssl.truststore.location": with_context(load_authorities, ssl_truststore_location=ENDLESS),
    "--users-file": lambda: users_from(Settings(emulator_users_file=ENDLESS)),
    "--command-config": lambda: security_from(ENDLESS),
    "--from-file": lambda: read_plan(ENDLESS, ["g"]),
}


@pytest.mark.parametrize("named", READERS)
def test_a_file_without_an_end_is_refused_by_its_setting(named: str) -> None:
    with pytest.raises(Exception, match=f"{named}.*{ENDLESS}: has more than") as refused:
        READERS[named]()
    assert not isinstance(refused.value, MemoryError | OSError)
    assert "\n" not in str(refused.value)


def test_what_is_within_the_bound_is_read(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_bytes(b"a" * MOST_BYTES)
    assert len(read_text(file)) == MOST_BYTES
    check_size(file)
