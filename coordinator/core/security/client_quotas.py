"""Client quotas: entities, their limits, and which of them a filter selects.

Kafka: ClientQuotaEntity, ClientQuotaControlManager.replay, ClientQuotasImage.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import TopicsRecords
from rejoin.coordinator.core.security.recorded_state import RecordedState
from rejoin.protocol.message import Struct
from rejoin.protocol.records.security import ClientQuotaData, ClientQuotaEntityData, ClientQuotaRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (CLIENT_ID, USER, IP)
"""In the order in which Kafka's maps iterate them."""

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Types with names, in the order of ``ENTITY_TYPES``; no name is the default of its type."""


class QuotaFilter(NamedTuple):
    """Selects entities that have all of its types; a ``strict`` one selects those that have no other type."""

    exact: dict[str, str | None]
    """Types whose name is given; none is the default."""
    any_name: tuple[str, ...]
    """Types that have some name, or are the default."""
    strict: bool

    def matches(self, entity: QuotaEntity) -> bool:
        parts = dict(entity)
        if self.strict and len(parts) != len(self.exact) + len(self.any_name):
            return False
        return all(kind in parts and parts[kind] == name for kind, name in self.exact.items()) and all(
            kind in parts for kind in self.any_name
        )


class ClientQuotaTable(RecordedState):
    """The limits of every entity that has one."""

    RECORDS: ClassVar[tuple[type[Struct], ...]] = (ClientQuotaRecord,)

    def __init__(self) -> None:
        self.limits: dict[QuotaEntity, dict[str, float]] = {}
        self.changes = 0
        """Grows with every change."""
        self._numbers: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.limits)

    def replay(self, record: ClientQuotaRecord) -> None:
        self.changes += 1
        data = record.data
        entity = tuple([(part.entity_type, part.entity_name) for part in data.entity])
        limits = self.limits.setdefault(entity, {})
        before = len(limits)
        if data.remove:
            limits.pop(data.key, None)
        else:
            limits[data.key] = data.value
        self._numbers[data.key] += len(limits) - before
        if not limits:
            del self.limits[entity]

    def has(self, key: str) -> bool:
        """Whether any entity has a limit of this kind."""
        return self._numbers[key] > 0

    def records(self) -> TopicsRecords:
        return tuple(
            [
                quota_record(entity, key, value)
                for entity, limits in self.limits.items()
                for key, value in limits.items()
            ]
        )

    def clear(self) -> None:
        self.limits.clear()
        self._numbers.clear()
        self.changes += 1


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """The record of a limit that is set, or removed where there is no value."""
    parts = tuple([ClientQuotaEntityData(entity_type=kind, entity_name=name) for kind, name in entity])
    data = ClientQuotaData(entity=parts, key=key, value=value or 0.0, remove=value is None)
    return ClientQuotaRecord(data=data)
