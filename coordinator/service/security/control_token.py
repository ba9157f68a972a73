"""The token of the control API: where it comes from, and when one is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from rejoin.coordinator.service.security.loopback import is_loopback

TOKEN_VARIABLE: Final = "REJOIN_CONTROL_TOKEN"
_LONGEST_TOKEN: Final = 4_096


def token_from(file: Path | None) -> str | None:
    """The token on a file's first line, or that of the environment, or none. Raises ``ValueError``."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE)
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.readline(_LONGEST_TOKEN).strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(
            f"--control-token-file {file}: {getattr(problem, 'strerror', None) or 'not text'}; "
            "expected a file with the token on its first line"
        ) from None


def check_token(token: str | None, host: str, *, is_served: bool) -> None:
    """Refuse a token that cannot be sent, and none where other machines reach the control API of this host.

    ``is_served`` is whether there is a control API to reach. Raises ``ValueError``.
    """
    if token is not None:
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError("--control-token-file: expected printable ASCII characters, at least one")
    elif is_served and not is_loopback(host):
        raise ValueError(
            f"--control on {host or 'every address'}: expected --control-token-file too, since other machines "
            "can reach it; or listen on 127.0.0.1"
        )
