"""CRC-32C of bytes as they are: the checksum of a record batch.

The package ``crc32c`` reads any buffer in place. It is used where it is installed (the extra ``fast``), and loaded with
the first checksum, as its own start takes milliseconds. Without it the bytes are copied for ``google-crc32c``, which
takes nothing but ``bytes``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import google_crc32c

Checksum: TypeAlias = Callable[[memoryview], int]

_PIECE: Final = 65_536


def checksum_of_copies(data: memoryview) -> int:
    """The checksum of a buffer, which is copied piece by piece."""
    # Copies of moderate pieces stay in the cache, and give no memory back to the system.
    if len(data) <= _PIECE:
        return int(google_crc32c.value(bytes(data)))
    crc = 0
    for at in range(0, len(data), _PIECE):
        crc = google_crc32c.extend(crc, bytes(data[at : at + _PIECE]))
    return int(crc)


def checksum_in_place() -> Checksum | None:
    """A function that takes the checksum of a buffer without copying it, where there is one."""
    try:
        from crc32c import crc32c  # noqa: PLC0415 - it is loaded when it is needed
    except ImportError:
        return None
    return crc32c


_checksum: Checksum | None = None


def checksum(data: memoryview) -> int:
    """The CRC-32C of a buffer."""
    global _checksum  # noqa: PLW0603 - chosen once
    if _checksum is None:
        _checksum = checksum_in_place() or checksum_of_copies
    return _checksum(data)
