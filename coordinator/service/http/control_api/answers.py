"""The answers of the control API, as ``GET /control`` describes them.

Names are snake_case, but for those within Kafka's requests and responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import models_json_schema

from rejoin.coordinator.core.views import (
    ConsumerGroupView,
    ConsumerMemberView,
    GroupView,
    OffsetView,
    ShareStateView,
    StreamsGroupView,
    StreamsMemberView,
)


class ControlAnswer(BaseModel):
    """An answer in JSON, or a part of one."""

    # Building a model costs ten times as much as declaring it, and most processes are never asked for the schemas.
    model_config = ConfigDict(extra="forbid", defer_build=True)


class ClockAnswer(ControlAnswer):
    """The clock; ``next_in_ms`` is null where no timer is set."""

    clock: str
    now_ms: int
    next_in_ms: int | None


class DescriptionAnswer(ClockAnswer):
    """The description of the API, and where everything stands."""

    mark: int
    faults: int
    bootstrap_servers: str | None
    operations: list[dict[str, Any]]
    schemas: dict[str, Any]


class TimerAnswer(ControlAnswer):
    """A timer that fired; ``fault`` is that of a latency, ``partitions`` how many were looked at for old offsets."""

    timer: str
    at_ms: int
    after_ms: int
    group: str | None = None
    member: str | None = None
    partition: int | None = None
    partitions: int | None = None
    fault: str | None = None


class EventAnswer(ControlAnswer):
    """An event that was emitted while time passed."""

    at_ms: int
    after_ms: int
    event: str
    text: str


class AdvanceAnswer(ControlAnswer):
    """How far the clock moved. ``reached`` is false if it stopped before the goal."""

    now_ms: int
    advanced_ms: int
    reached: bool
    fired: list[TimerAnswer]
    events: list[EventAnswer]


class FaultAnswer(ControlAnswer):
    """A rule as it was made, and how it fares: ``spent`` applies to nothing any more."""

    id: str
    rule: dict[str, Any]
    hits: int
    held: int
    released: bool
    spent: bool


class ReleaseAnswer(FaultAnswer):
    """A rule whose barrier is open; ``let_go`` counts the requests that waited there."""

    let_go: int


class FaultsAnswer(ControlAnswer):
    """Every rule, in the order in which they are tried."""

    faults: list[FaultAnswer]


class RemovalAnswer(ControlAnswer):
    """The rules that were removed."""

    removed: list[FaultAnswer]


class ConsumerGroupAnswer(ConsumerGroupView):
    """A consumer group, with what only its members have."""

    # Narrower than in the view, whose schema would show what all members of any group have.
    members: list[ConsumerMemberView]  # type: ignore[assignment]


class StreamsGroupFields(StreamsGroupView):
    """A streams group, with what only its members have."""

    members: list[StreamsMemberView]  # type: ignore[assignment]


class GroupAnswer(ControlAnswer):
    """A group; null where there is none."""

    group: StreamsGroupFields | ConsumerGroupAnswer | GroupView | None


class StreamsGroupAnswer(ControlAnswer):
    """A streams group with its tasks; null where there is none."""

    group: StreamsGroupFields | None


class TopicAnswer(ControlAnswer):
    """A topic, by its name."""

    topic: str


class MemberAnswer(ControlAnswer):
    """The member that was meant."""

    group: str
    member: str


class GroupConfigsAnswer(ControlAnswer):
    """The settings of a group that were changed; null: the broker's default again."""

    group: str
    configs: dict[str, str | None]


class PrincipalsAnswer(ControlAnswer):
    """The principals that clients were given, by client id."""

    principals: dict[str, str]


class AclsAnswer(ControlAnswer):
    """All ACLs, as ``User:alice:READ:topic=orders``."""

    acls: list[str]


class QuotasAnswer(ControlAnswer):
    """All entities with their limits, as ``user=alice producer_byte_rate=1000``."""

    quotas: list[str]


class ShareStateAnswer(ControlAnswer):
    """A share-partition; null before a member fetches from it."""

    share_partition: ShareStateView | None


class PersisterFailureAnswer(ControlAnswer):
    """Requests to share coordinators that will fail, so many; ``error`` is null where no answer comes."""

    group: str
    operation: str
    error: str | None
    count: int


class ShareStatesAnswer(ControlAnswer):
    """The share-partitions of a group."""

    share_partitions: list[ShareStateView]


class LeadingAnswer(ControlAnswer):
    """An offsets partition, and whether this node leads it now."""

    topic: str
    partition: int
    leading: bool


class CutAnswer(ControlAnswer):
    """Who a broker is cut off from."""

    clients: bool
    controller: bool
    brokers: list[int]


class BrokerAnswer(ControlAnswer):
    """A broker; ``kafka`` and ``url`` are null without a listener."""

    broker: int
    state: Literal["running", "paused", "stopped"]
    is_fenced: bool
    kafka: str | None
    url: str | None
    cut_off_from: CutAnswer
    leads: int


class BrokersAnswer(ControlAnswer):
    """Every broker."""

    brokers: list[BrokerAnswer]


class LeaderAnswer(ControlAnswer):
    """A partition and its leader, which may be none."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


class PartitionsAnswer(ControlAnswer):
    """Partitions with their leaders."""

    partitions: list[LeaderAnswer]


class MovesAnswer(ControlAnswer):
    """The partitions that have another leader now."""

    moved: list[LeaderAnswer]


class AdvertisedAnswer(ControlAnswer):
    """The addresses that clients are sent to, by the listener's name."""

    bootstrap_servers: str
    listeners: dict[str, str]


class CompactionAnswer(ControlAnswer):
    """The names of the topics whose logs were compacted."""

    topics: list[str]


class RecordAnswer(ControlAnswer):
    """A record. Bytes that are not UTF-8 have the name with ``_base64``, unless all are asked for in base64."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None
    headers: list[tuple[str, str | None]] | None = None
    headers_base64: list[tuple[str, str | None]] | None = None


class RecordsAnswer(ControlAnswer):
    """Records by partition and offset."""

    records: list[RecordAnswer]


class OffsetsAnswer(ControlAnswer):
    """The committed offsets of a group."""

    offsets: list[OffsetView]


class RequestAnswer(ControlAnswer):
    """A request with Kafka's fields of its version; the answer is null as long as it waits, or if a fault lost it."""

    mark: int
    at_ms: int
    api: str
    version: int
    client_id: str
    client_host: str
    request: dict[str, Any]
    response: dict[str, Any] | None


class RequestsAnswer(ControlAnswer):
    """Requests of clients."""

    requests: list[RequestAnswer]


class MarkAnswer(ControlAnswer):
    """The mark of this moment."""

    mark: int


class ResetAnswer(MarkAnswer):
    """The time and the mark at the new beginning."""

    at_ms: int


class SnapshotAnswer(ResetAnswer):
    """The name of a snapshot, with its time and mark."""

    snapshot: str


def answer_schemas(answers: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """The schemas of these answers and of their parts, by name."""
    _, found = models_json_schema(
        [(each, "serialization") for each in answers], by_alias=False, ref_template="#/schemas/{model}"
    )
    schemas: dict[str, Any] = found["$defs"]
    return schemas
