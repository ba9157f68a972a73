"""The versions of Kafka that a request may name."""

from __future__ import annotations

import re
from typing import Final

from rejoin.coordinator.control.errors import InvalidArgument
from rejoin.journal.kafka_logs.template import NEWEST, OLDEST, Version

_VERSION: Final = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})(\.[0-9]{1,3})?")


def kafka_version(text: str, oldest: Version = OLDEST, why: str = "") -> Version:
    """``3.9`` or ``3.9.0`` as numbers. Raises :class:`InvalidArgument` for what is no known version."""
    found = _VERSION.fullmatch(text)
    version = (int(found[1]), int(found[2])) if found is not None else (0, 0)
    if not oldest <= version <= NEWEST:
        expected = f"expected a version from {'.'.join(map(str, oldest))} to {'.'.join(map(str, NEWEST))}"
        raise InvalidArgument("kafka", expected, text, f"kafka: {expected}, not {text[:32]}{why}")
    return version
