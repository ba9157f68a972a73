"""Problems of quotas: of an entity, of one limit, and of a filter.

Texts are Kafka's. Kafka: ClientQuotaControlManager.validateEntity and validateQuotaKeyValue, ClientQuotasImage.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from math import isfinite
from typing import Final

from rejoin.coordinator.core.security.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
    QuotaFilter,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.client_quotas import QuotaFilterComponent

LONGEST_NAME: Final = 1_024
"""Characters of a user's name or a client id in an entity."""
# Differs: Kafka takes as much as a text of its protocol can have.

_LARGEST_LONG: Final = 2.0**63
_LARGEST_INT: Final = 2.0**31 - 1
_FRACTIONS: Final = frozenset({REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE})
_OF_CLIENTS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, *_FRACTIONS})
_OF_ADDRESSES: Final = frozenset({CONNECTION_CREATION_RATE})


class QuotaProblem(Exception):
    """A request that is refused; the text says why."""

    def __init__(self, message: str, error: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.error = error


def check_entity(parts: QuotaEntity) -> None:
    """Raise :class:`QuotaProblem` where there cannot be such an entity."""
    if not parts:
        raise QuotaProblem("Invalid empty client quota entity")
    for kind, name in parts:
        if kind not in ENTITY_TYPES:
            raise QuotaProblem(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise QuotaProblem(f"Empty {kind} not supported")
        if name is not None and len(name) > LONGEST_NAME:
            raise QuotaProblem(f"a name of {len(name):,} characters; expected at most {LONGEST_NAME:,}")


def keys_of(entity: QuotaEntity) -> frozenset[str]:
    """The limits that an entity can have. Raises :class:`QuotaProblem` for a combination that cannot be."""
    parts = dict(entity)
    if IP not in parts:
        return _OF_CLIENTS
    if len(parts) > 1:
        # The missing space is Kafka's.
        message = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise QuotaProblem(message)
    name = parts[IP]
    if name is not None and not _is_address(name):
        raise QuotaProblem(f"{name} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _is_address(text: str) -> bool:
    # Differs: Kafka asks the resolver for any name. Of names only the machine's own is known here.
    if text == "localhost":
        return True
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def check_limit(keys: Iterable[str], key: str, value: float) -> None:
    """Raise :class:`QuotaProblem` where an entity with these keys cannot have this limit."""
    if key not in keys:
        raise QuotaProblem(f"Invalid configuration key {key}")
    if not isfinite(value):
        raise QuotaProblem(f"Quota {key} must be a finite number")
    if value <= 0:
        raise QuotaProblem(f"Quota {key} must be greater than 0")
    if key in _FRACTIONS:
        return
    most, named = (_LARGEST_INT, "an INT") if key == CONNECTION_CREATION_RATE else (_LARGEST_LONG, "a LONG")
    if value > most:
        raise QuotaProblem(f"Proposed value for {key} is too large for {named}.")
    if not _is_whole(value):
        raise QuotaProblem(f"{key} cannot be a fractional value.")


def _is_whole(value: float) -> bool:
    return abs(value % 1) <= _SMALLEST_FRACTION


_SMALLEST_FRACTION: Final = 1e-6


def filter_of(components: Iterable[QuotaFilterComponent], *, strict: bool) -> QuotaFilter:
    """Read a filter. Raises :class:`QuotaProblem`."""
    exact: dict[str, str | None] = {}
    any_name: dict[str, None] = {}
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise QuotaProblem("Invalid empty entity type.")
        if kind in exact or kind in any_name:
            raise QuotaProblem(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise QuotaProblem(f"Unsupported entity type {kind}", ErrorCode.UNSUPPORTED_VERSION)
        match component.match_type:
            case 0:
                if match is None:
                    raise QuotaProblem("Request specified MATCH_TYPE_EXACT, but set match string to null.")
                exact[kind] = match
            case 1:
                _refuse_name(match, "MATCH_TYPE_DEFAULT")
                exact[kind] = None
            case 2:
                _refuse_name(match, "MATCH_TYPE_SPECIFIED")
                any_name[kind] = None
            case other:
                raise QuotaProblem(f"Unknown match type {other}")
    named = exact.keys() | any_name.keys()
    if IP in named and named & {USER, CLIENT_ID}:
        raise QuotaProblem(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    return QuotaFilter(exact, tuple(any_name), strict)


def _refuse_name(match: str | None, match_type: str) -> None:
    if match is not None:
        raise QuotaProblem(f"Request specified {match_type}, but also specified a match string.")
