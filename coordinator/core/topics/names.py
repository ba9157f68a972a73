"""Names of topics, and the error of what cannot be done with one. Kafka: Topic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rejoin.protocol.errors import ErrorCode

TWICE: Final = "it stands in the request more than once"
"""Said of a topic or another resource."""

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_COLLIDING: Final = frozenset("._")
"""Characters that are the same in the names of metrics."""


class TopicError(Exception):
    """A refused topic request: the error, and its message."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def is_legal_name(name: str) -> bool:
    """Whether a topic may have this name. Kafka: Topic.isValid."""
    return name not in (".", "..") and _LEGAL_NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Kafka: Topic.validate. Raises :class:`TopicError` for a name that no topic may have."""
    if not is_legal_name(name):
        expected = "1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', and neither '.' nor '..' alone"
        raise TopicError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name[:60]!r} cannot be a topic's name: expected {expected}"
        )


def check_collision(name: str, others: Iterable[str]) -> None:
    """Raises :class:`TopicError` where another name differs in dots and underscores only. Kafka: Topic.hasCollision."""
    if _COLLIDING.isdisjoint(name):
        return
    unified = name.replace(".", "_")
    for other in others:
        if other.replace(".", "_") == unified:
            raise TopicError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic {name!r} differs from {other!r} only in '.' and '_', which are the same in names of metrics",
            )
