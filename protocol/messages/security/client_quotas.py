"""DescribeClientQuotas (key 48) and AlterClientQuotas (49): limits of users, client ids and addresses.

An entity is a list of types with names: ``user``, ``client-id``, both, or ``ip``. A name that is null stands for the
default: it holds for all that have no entry of their own. v1 has the flexible encoding, and the same fields.
"""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Int8, Int32


class QuotaEntityData(Struct):
    """One part of an entity."""

    entity_type: str
    entity_name: str | None


class QuotaFilterComponent(Struct):
    """Selects entities by one type: 0 the exact name, 1 the default, 2 any of this type."""

    entity_type: str
    match_type: Int8
    match: str | None


class DescribeClientQuotasRequest(Request):
    """List the quotas of entities that all components select; ``strict`` leaves out those with other types, too."""

    components: tuple[QuotaFilterComponent, ...]
    strict: bool

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)


class QuotaValueData(Struct):
    """One limit: bytes a second, percent of a thread, changes a second, or connections a second."""

    key: str
    value: float


class DescribedQuotaEntity(Struct):
    """An entity with its limits."""

    entity: tuple[QuotaEntityData, ...]
    values: tuple[QuotaValueData, ...]


class DescribeClientQuotasResponse(Response):
    """The entities that were selected; null with an error."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    entries: tuple[DescribedQuotaEntity, ...] | None = ()


class QuotaOperation(Struct):
    """A limit to set, or to remove; then its value does not count."""

    key: str
    value: float
    remove: bool


class QuotaAlteration(Struct):
    """Changes of one entity."""

    entity: tuple[QuotaEntityData, ...]
    ops: tuple[QuotaOperation, ...]


class AlterClientQuotasRequest(Request):
    """Set and remove limits; with ``validate_only`` nothing is changed."""

    entries: tuple[QuotaAlteration, ...]
    validate_only: bool

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        results = [
            AlteredQuotaEntity(error_code=error, error_message=message, entity=each.entity) for each in self.entries
        ]
        return AlterClientQuotasResponse(entries=tuple(results))


class AlteredQuotaEntity(Struct):
    """The result for one entity."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    entity: tuple[QuotaEntityData, ...]


class AlterClientQuotasResponse(Response):
    """A result for each entity."""

    throttle_time_ms: Int32 = 0
    entries: tuple[AlteredQuotaEntity, ...] = ()
