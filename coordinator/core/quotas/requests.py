"""DescribeClientQuotas and AlterClientQuotas: checked, answered, and turned into records of the topics log.

Kafka: ClientQuotaControlManager, ClientQuotasImage.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.coordinator.core.inputs import Context, Token, TopicsRecords
from rejoin.coordinator.core.quotas.validation import QuotaProblem, check_entity, check_limit, filter_of, keys_of
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.client_quotas import ENTITY_TYPES, QuotaEntity, quota_record
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import hash_map_order
from rejoin.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuotaEntity,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuotaEntity,
    QuotaAlteration,
    QuotaEntityData,
    QuotaValueData,
)
from rejoin.protocol.records.security import ClientQuotaRecord

_SMALLEST: Final = 1
"""Size of the table that Kafka's map of an entity's limits begins with (ClientQuotaDelta.apply)."""

_PLACES: Final = {kind: place for place, kind in enumerate(ENTITY_TYPES)}


class QuotaRequests:
    """Answers requests about quotas, and changes the table of them."""

    def __init__(self, ctx: StepContext, changes: TopicChanges, admission: Admission) -> None:
        self._ctx = ctx
        self._changes = changes
        self._admission = admission

    def describe(self, token: Token, request: DescribeClientQuotasRequest, context: Context) -> None:
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        try:
            wanted = filter_of(request.components, strict=request.strict)
        except QuotaProblem as problem:
            self._ctx.reply(token, request.error_response(context.api_version, problem.error, problem.message))
            return
        entries = [
            DescribedQuotaEntity(entity=_entity_data(entity), values=_values(limits))
            for entity, limits in self._ctx.security.client_quotas.limits.items()
            if wanted.matches(entity)
        ]
        self._ctx.reply(token, DescribeClientQuotasResponse(error_message="", entries=tuple(entries)))

    def alter(self, token: Token, request: AlterClientQuotasRequest, context: Context) -> None:
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error, "Cluster authorization failed."))
            return
        self._changes.make(_QuotaChange(self._ctx, token, request))


def _entity_data(entity: QuotaEntity) -> tuple[QuotaEntityData, ...]:
    return tuple([QuotaEntityData(entity_type=kind, entity_name=name) for kind, name in entity])


def _values(limits: dict[str, float]) -> tuple[QuotaValueData, ...]:
    return tuple([QuotaValueData(key=key, value=limits[key]) for key in hash_map_order([*limits], _SMALLEST)])


def _entity(parts: Iterable[QuotaEntityData]) -> QuotaEntity:
    """The entity of a request; of a type that comes twice the last name counts, as in Kafka's map."""
    names = {part.entity_type: part.entity_name for part in parts}
    return tuple(sorted(names.items(), key=lambda item: (_PLACES.get(item[0], len(_PLACES)), item[0])))


class _QuotaChange(TopicChange):
    """An AlterClientQuotas under way."""

    def __init__(self, ctx: StepContext, token: Token, request: AlterClientQuotasRequest) -> None:
        self._ctx = ctx
        self._token = token
        self._request = request
        self._results: dict[QuotaEntity, AlteredQuotaEntity] = {}

    def decide(self) -> TopicsRecords:
        records: list[ClientQuotaRecord] = []
        new: dict[QuotaEntity, None] = {}
        self._results = {}
        for alteration in self._request.entries:
            entity = _entity(alteration.entity)
            try:
                records += self._decide(entity, alteration, new)
            except QuotaProblem as problem:
                self._results[entity] = AlteredQuotaEntity(
                    error_code=problem.error, error_message=problem.message, entity=_entity_data(entity)
                )
            else:
                self._results[entity] = AlteredQuotaEntity(entity=_entity_data(entity))
        return () if self._request.validate_only else tuple(records)

    def _decide(
        self, entity: QuotaEntity, alteration: QuotaAlteration, new: dict[QuotaEntity, None]
    ) -> list[ClientQuotaRecord]:
        """The records of the changes of one entity. Raises :class:`QuotaProblem`."""
        wanted = {op.key: None if op.remove else op.value for op in alteration.ops}
        if len(wanted) < len(alteration.ops) or entity in self._results:
            # Kafka: of two entries for an entity the first is applied, though the answer refuses both.
            raise QuotaProblem(f"Ignoring duplicate entity {_text(entity)}")
        check_entity(entity)
        keys = keys_of(entity)
        table = self._ctx.security.client_quotas
        present = table.limits.get(entity, {})
        records = []
        for key in hash_map_order([*wanted]):
            value = wanted[key]
            if value is None:
                if key in present:
                    records.append(quota_record(entity, key, None))
                continue
            check_limit(keys, key, value)
            if present.get(key) != value:
                records.append(quota_record(entity, key, value))
        if not present and any(value is not None for value in wanted.values()):
            most = self._ctx.settings.emulator_max_client_quotas
            if len(table) + len(new) >= most:
                message = f"there are quotas of {most:,} entities already, as many as emulator.max.client.quotas allows"
                raise QuotaProblem(message, ErrorCode.POLICY_VIOLATION)
            new[entity] = None
        return records

    def ended(self, error: ErrorCode) -> None:
        results = [*self._results.values()]
        if error is not ErrorCode.NONE:
            results = [
                each.model_copy(update={"error_code": error}) if each.error_code is ErrorCode.NONE else each
                for each in results
            ]
        self._ctx.reply(self._token, AlterClientQuotasResponse(entries=tuple(results)))


def _text(entity: QuotaEntity) -> str:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"
