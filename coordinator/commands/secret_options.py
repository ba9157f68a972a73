"""Secrets do not come from the command line, which other users of a machine can read."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlsplit

STORE_VARIABLE: Final = "REJOIN_STORE"

STORE_REFUSED: Final = (
    "--store: expected an address without a password, as other users can read the command line: set "
    f"{STORE_VARIABLE} to the whole address, or PGPASSWORD to the password, or PGPASSFILE to a file with it"
)


def has_password(url: str) -> bool:
    """Whether the address of a database has a password in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "@" in url
    return parts.password is not None or any("password" in name for name, _ in parse_qsl(parts.query))
