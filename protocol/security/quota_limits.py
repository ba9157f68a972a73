"""Quotas as an administrator names them: who is limited, and by what.

Kafka: ClientQuotaEntity, ClientQuotaAlteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

from rejoin.protocol.messages.security.client_quotas import QuotaAlteration, QuotaEntityData, QuotaOperation
from rejoin.protocol.security.names import DEFAULT as DEFAULT

_TYPES: Final = ("user", "client-id", "ip")
_EXPECTED: Final = "expected ENTITY LIMIT=NUMBER ..., as in user=alice,client-id=app producer_byte_rate=1000000"


class QuotaHolder(NamedTuple):
    """A user, a client id, both together, or an address; ``DEFAULT`` in place of a name is the default of its type."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @classmethod
    def of(cls, parts: Iterable[QuotaEntityData]) -> Self:
        """The entity of a message."""
        return cls(**{_field(part.entity_type): part.entity_name or DEFAULT for part in parts})

    def parts(self) -> dict[str, str | None]:
        """Types with names, as messages have them: a name that is null is the default."""
        given = zip(_TYPES, self, strict=True)
        return {kind: None if name == DEFAULT else name for kind, name in given if name is not None}

    def data(self) -> tuple[QuotaEntityData, ...]:
        """The entity of a message."""
        return tuple(QuotaEntityData(entity_type=kind, entity_name=name) for kind, name in self.parts().items())

    def __str__(self) -> str:
        return ",".join(f"{kind}={name}" for kind, name in zip(_TYPES, self, strict=True) if name is not None)


class QuotaLimits(NamedTuple):
    """Limits of one entity, by Kafka's names; none in place of a number removes the limit."""

    entity: QuotaHolder
    limits: Mapping[str, float | None]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``user=alice,client-id=app producer_byte_rate=1000000``. Raises ValueError.

        The limit ``none`` removes it.
        """
        words = text.split()
        parts = [word.partition("=") for word in words[0].split(",")] if words else []
        if not parts or len(words) < 2 or any(kind not in _TYPES or not name for kind, _, name in parts):
            raise ValueError(f"cannot read the quota {text!r}; {_EXPECTED}")
        limits: dict[str, float | None] = {}
        for word in words[1:]:
            key, _, number = word.partition("=")
            try:
                limits[key] = None if number == "none" else float(number)
            except ValueError:
                raise ValueError(f"{word!r} in {text!r} is no limit; {_EXPECTED}") from None
        return cls(QuotaHolder(**{_field(kind): name for kind, _, name in parts}), limits)

    def __str__(self) -> str:
        shown = (f"{key}={'none' if value is None else f'{value:.15g}'}" for key, value in self.limits.items())
        return " ".join([str(self.entity), *shown])

    def alteration(self) -> QuotaAlteration:
        """The entry of an AlterClientQuotas."""
        ops = tuple(
            QuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in self.limits.items()
        )
        return QuotaAlteration(entity=self.entity.data(), ops=ops)


def _field(kind: str) -> str:
    return kind.replace("-", "_")
