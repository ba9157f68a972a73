"""A consumer's state after each line of its log, and the statements that the line makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rejoin.journal.kafka_logs.clients.names import JAVA, KAFKAJS, RDKAFKA, SARAMA
from rejoin.pipeline.reading.broker_logs.groups.membership import UUID
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.families import STARTED, ClientMessage
from rejoin.pipeline.reading.client_logs.logged_consumer.given import has_partitions
from rejoin.pipeline.reading.client_logs.logged_consumer.leaving import Leaving
from rejoin.pipeline.reading.client_logs.logged_consumer.refusals import restated
from rejoin.pipeline.reading.client_logs.logged_consumer.streams import STREAMS_READERS
from rejoin.pipeline.reading.client_logs.signed import STREAMS_CLIENT
from rejoin.pipeline.vocabulary import ASSIGNED_NOTHING, TASKS_ASSIGNED, TASKS_CORRUPTED, TASKS_READY, is_untimed

_PARTITION: Final = re.compile(r"topic='(?P<topic>[^']*)', partition=(?P<partition>\d{1,9})\b")
_MEMBERS_GIVEN: Final = re.compile(
    r"(?P<member>[^{=]+?)=Assignment\(partitions=\[(?P<partitions>[^\]]*)\][^)]*\)(?:, )?"
)
_MEMBERS_BALANCED: Final = re.compile(r"(?P<member>[^\s,{]+)\{(?P<partitions>[^}]*)\}")
_OFFSET: Final = re.compile(r"(?P<topic>[\w.-]+)-(?P<partition>\d+)=OffsetAndMetadata\{offset=(?P<offset>\d+)")
_UPDATE: Final = re.compile(r"(Assigned|Added|Revoked) partitions[^:\n]*:\s+\[([^\]]*)\]")
_TOPIC_SIZES: Final = re.compile(r"([\w.-]+)=(?:\[([^\]]*)\]|(\d+))|'([\w.-]+)': (\d+)")


UNNAMED: Final = "#"
"""Stands in the names of members whose ids are not logged, before their number; Kafka's ids have none."""
NOT_A_MEMBER: Final = (
    "Heartbeat: local member_id was not recognized",
    "Heartbeat failed: local member_id was not recognized",
    "Attempt to heartbeat failed for since member id",
    "Error sending heartbeat: Kafka::UnknownMemberId",
)
"""Prefixes of lines about a failed heartbeat after which the consumer has no member id."""
_SETTINGS: Final = ("session_timeout_ms", "rebalance_timeout_ms", "group_protocol")


@dataclass(slots=True)
class LoggedConsumer:
    """A consumer's state so far."""

    family: str
    name: str = ""
    """The key of the consumer within its file."""
    group: str | None = None
    client_id: str | None = None
    instance: str | None = None
    member: str = ""
    generation: int = -1
    was: str = ""
    """The consumer's member id before this one, within its process."""
    fresh: bool = True
    """Whether the consumer has not joined since its process began."""
    restarts: bool = False
    """Whether the consumer begins anew within its process."""
    node: str = ""
    """The process, or the file of several."""
    unnamed: int = 0
    """Number of this consumer's memberships whose ids the library does not log."""
    session: Statement | None = None
    """Of sarama: the line that began the session; the line at its end names member and generation."""
    owned: list[tuple[str, int]] = field(default_factory=list)
    adding: list[tuple[str, int]] | None = None
    gave_up: bool = False
    """Whether a container of Spring gave up partitions and has no others yet."""
    closing: bool = False
    to_sync: bool = False
    """Whether the consumer has joined a generation, and has no line yet about the answer to SyncGroup."""
    settings: dict[str, Any] = field(default_factory=dict)
    pending: list[Statement] = field(default_factory=list)
    leaving: Leaving = field(default_factory=Leaving)
    nothing: Statement | None = None
    """The last assignment, and those just before, if they have no partition."""
    has_standby: bool = False
    """Whether the thread of Streams has standby tasks: with them, it is of use without any partition."""
    streams_status: tuple[str | None, str | None] = (None, None)
    shutdown_said: bool = False
    assigned_at: int | None = None
    """Since when a thread of Streams has tasks that do not all run yet, in ms."""
    ready_said: bool = False
    """Whether a line with its own figure has said how long these tasks took."""


def said_by(consumer: LoggedConsumer, message: ClientMessage, statement: Statement) -> Iterator[Statement]:
    """The statements of a line, with what they show of earlier ones, and what the consumer is after it."""
    for said in restated(message, has_joined=bool(consumer.member or consumer.was)):
        for each in _of_line(consumer, said, replace(statement, kind=said.kind)):
            yield from consumer.leaving.completed(consumer.family, each)
    has = has_partitions(message)
    if has is not None:
        consumer.nothing = (
            None if has else consumer.nothing or replace(about(consumer, statement, {}), kind=ASSIGNED_NOTHING)
        )


def _of_line(consumer: LoggedConsumer, message: ClientMessage, statement: Statement) -> Iterator[Statement]:
    kind, values = message.kind, message.values
    if consumer.family == SARAMA:
        yield from _of_sarama(consumer, kind, statement)
    _learn(consumer, kind, values)
    special = _SPECIAL.get(kind)
    if special is not None:
        yield from special(consumer, values, statement)
        return
    if kind == "partitions_assigned" and consumer.to_sync:
        # Java before 2.7 and kafka-python do not log the answer to SyncGroup, which is just before.
        consumer.to_sync = False
        yield replace(about(consumer, statement, {}), kind="group_synced")
    if consumer.family == KAFKAJS:
        yield from _before_kafkajs(consumer, kind, statement)
    yield about(consumer, statement, _more(consumer, kind, values))
    if consumer.family == KAFKAJS and kind == "generation_joined":
        yield from _assigned_by_kafkajs(consumer, values, statement)
    if kind == "membership_reset":
        consumer.generation = -1
        if "member id" in values.get("and", "and member id"):
            _forget(consumer)
    elif kind in ("group_left", "consumer_closed") or (
        kind == "heartbeat_failed" and message.text.startswith(NOT_A_MEMBER)
    ):
        _forget(consumer)
    elif kind in ("generation_joined", "group_synced"):
        consumer.fresh, consumer.was, consumer.to_sync = False, "", kind == "generation_joined"


def _learn(consumer: LoggedConsumer, kind: str, values: dict[str, Any]) -> None:
    """Take in the member id and generation that a line names."""
    if "group_protocol" in values:
        consumer.settings["group_protocol"] = values["group_protocol"]
    if kind == STARTED:
        consumer.settings = {name: values[name] for name in _SETTINGS if name in values}
        consumer.fresh = not consumer.restarts
        consumer.was = consumer.was or consumer.member if consumer.restarts else ""
        consumer.member, consumer.generation, consumer.restarts = "", -1, False
        consumer.nothing = None
    elif kind == "consumer_restarting":
        consumer.restarts = True
    elif kind == "member_id_received":
        if consumer.member and not values["member"]:
            _forget(consumer)
        consumer.member = values["member"]
    elif (kind == "join_sent" and "member" in values) or (kind == "group_left" and values.get("member")):
        consumer.member = consumer.member if UNNAMED in consumer.member else values["member"]
    elif kind == "group_left" and consumer.family == RDKAFKA:
        # librdkafka forgets its member id in the line before this one.
        consumer.member = consumer.member or consumer.was
    elif kind == "generation_joined":
        consumer.member = values.get("member") or consumer.member or _unnamed(consumer)
        # KafkaJS does not log generations: those that follow count them.
        consumer.generation = int(values.get("generation", -1))
    elif kind == "poll_timeout_exceeded" and "limit_ms" in values:
        consumer.settings["rebalance_timeout_ms"] = int(values["limit_ms"])


def _unnamed(consumer: LoggedConsumer) -> str:
    """A name for a member whose id is not logged: by Java before 2.7, by kafka-python before 2.1, and by sarama of one
    that died in its first session."""
    consumer.unnamed += 1
    return f"{consumer.client_id or consumer.node}{UNNAMED}{consumer.unnamed}"


def _more(consumer: LoggedConsumer, kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Statement of a line, beside its consumer's identity."""
    more: dict[str, Any] = {name: values[name] for name in _AS_THEY_ARE if name in values}
    if kind == "join_sent":
        more["fresh"], more["was"] = consumer.fresh and not consumer.was, consumer.was
    if "partitions" in values:
        more["partitions"] = partitions_of(values["partitions"])
    if kind == "assignment":
        found = _MEMBERS_GIVEN if consumer.family == JAVA else _MEMBERS_BALANCED
        more["given"] = [each["member"].strip() for each in found.finditer(values["assignments"])]
    if "committed" in values:
        more["offsets"] = [[each[0], int(each[1]), int(each[2])] for each in _OFFSET.findall(values["committed"])]
    if kind in ("metadata_changed", "rejoin_requested"):
        more |= _grown(values)
    return more


def _nothing(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """A line that is known and says nothing of the group."""
    return iter(())


def _reconciling(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """A consumer of the consumer protocol begins to take over; it is assigned what is new when it acknowledges."""
    update = dict(_UPDATE.findall(values.get("update", "")))
    consumer.adding = partitions_of(update.get("Added", ""))
    return iter(())


def _one_partition(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    kind = "partitions_assigned" if statement.kind == "partition_added" else "partitions_revoked"
    more = {"partitions": [(values["topic"], int(values["number"]))]}
    yield replace(about(consumer, statement, more), kind=kind)


def _forget(consumer: LoggedConsumer) -> None:
    consumer.was, consumer.member, consumer.generation = consumer.member or consumer.was, "", -1


def _modern(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """A transition of a consumer of the consumer protocol, by the events that a classic one has for it."""
    before, state, epoch = values["state_before"], values["state"], int(values["member_epoch"])
    if values["member"] != consumer.member and consumer.member:
        consumer.was = consumer.member
    consumer.member = values["member"]
    if epoch > 0:
        consumer.generation = epoch
    if state == "JOINING":
        # Kafka: a member that left or was fenced joins again under its old id.
        was = consumer.member if before in ("FENCED", "STALE") else consumer.was
        fresh = before == "UNSUBSCRIBED" and not was
        yield replace(about(consumer, statement, {"fresh": fresh, "was": was}), kind="join_sent")
    elif state in ("RECONCILING", "STABLE") and before == "JOINING":
        yield replace(about(consumer, statement, {"modern": True}), kind="generation_joined")
    elif state == "RECONCILING":
        yield replace(about(consumer, statement, {"modern": True}), kind="epoch_reached")
    elif state == "FENCED":
        yield replace(about(consumer, statement, {"reason": "the coordinator fenced it"}), kind="membership_reset")
    elif state in ("PREPARE_LEAVING", "LEAVING") and before not in ("PREPARE_LEAVING",):
        yield replace(about(consumer, statement, {}), kind="group_left")
    elif state == "FATAL":
        yield replace(about(consumer, statement, {"problem": statement.text}), kind="fatal")
    if state == "ACKNOWLEDGING" and consumer.adding is not None:
        yield replace(about(consumer, statement, {"partitions": consumer.adding}), kind="partitions_assigned")
        consumer.adding = None
    if state == "STABLE":
        consumer.was = ""
        yield replace(about(consumer, statement, {"modern": True}), kind="group_synced")


def _session_begun(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """franz-go's line about what a generation added and took away."""
    if lost := _of_franz_go(values["lost"]):
        yield replace(about(consumer, statement, {"partitions": lost}), kind="partitions_revoked")
    more = {"partitions": _of_franz_go(values["added"])}
    yield replace(about(consumer, statement, more), kind="partitions_assigned")


def _of_franz_go(text: str) -> list[tuple[str, int]]:
    """Partitions as franz-go prints them: ``orders[0 4], audits[1]``."""
    return [(topic, int(number)) for topic, numbers in _FRANZ_PARTITIONS.findall(text) for number in numbers.split()]


def _heartbeat_response(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """KafkaJS logs each answer at DEBUG, and those with an error at ERROR."""
    if values.get("problem"):
        yield replace(about(consumer, statement, {"problem": str(values["problem"])}), kind="heartbeat_failed")


def _closing(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """A consumer that stops: all that is known of one whose log begins so late."""
    if not consumer.member and consumer.generation == -1 and not consumer.closing:
        consumer.closing = True
        yield replace(about(consumer, statement, {}), kind="consumer_closed")


def _before_kafkajs(consumer: LoggedConsumer, kind: str, statement: Statement) -> Iterator[Statement]:
    """KafkaJS logs no line for this: it gives up all partitions before it joins, and joins at once."""
    if kind in ("rejoin_requested", "metadata_changed", "heartbeat_failed", "group_left", "crashed") and consumer.owned:
        how = "partitions_revoked" if kind in ("rejoin_requested", "metadata_changed") else "partitions_lost"
        yield replace(about(consumer, statement, {"partitions": consumer.owned}), kind=how)
        consumer.owned = []
    if kind == "heartbeat_failed":
        _forget(consumer)
    if kind == "generation_joined":
        more = {"fresh": consumer.fresh and not consumer.was, "was": consumer.was, "member": ""}
        yield replace(about(consumer, statement, more), kind="join_sent")


def _assigned_by_kafkajs(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    given = values.get("given")
    given = given if isinstance(given, dict) else {}
    consumer.owned = [
        (str(topic), number)
        for topic, numbers in given.items()
        for number in (numbers if isinstance(numbers, list) else ())
        if isinstance(number, int)
    ]
    yield replace(about(consumer, statement, {}), kind="group_synced")
    yield replace(about(consumer, statement, {"partitions": consumer.owned}), kind="partitions_assigned")


def _of_sarama(consumer: LoggedConsumer, kind: str, statement: Statement) -> Iterator[Statement]:
    """Note where a session begins; one whose process died in it has no end."""
    if kind == STARTED:
        yield from ended(consumer)
    elif (kind == "partition_added" and (consumer.session is None or consumer.session.kind != kind)) or (
        kind == "coordinator_found" and consumer.session is None
    ):
        consumer.session = statement
    elif kind == "group_left":
        consumer.session = None


def _session_ended(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    consumer.member, consumer.generation = values["member"], int(values["generation"])
    yield from ended(consumer)
    yield replace(about(consumer, statement, {}), kind="rejoin_requested")
    consumer.fresh, consumer.was = False, ""


def ended(consumer: LoggedConsumer) -> Iterator[Statement]:
    """Conclusions where a log ends: a leave was a stop, and a session of sarama has no known generation."""
    yield from consumer.leaving.ended()
    if consumer.nothing is not None and not consumer.has_standby:
        yield consumer.nothing
    began, consumer.session = consumer.session, None
    if began is not None:
        consumer.member = consumer.member or _unnamed(consumer)
        yield replace(about(consumer, began, {}), kind="generation_joined")
        yield replace(about(consumer, began, {}), kind="group_synced")
        consumer.generation = -1


def _of_streams(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    for kind, more in STREAMS_READERS[statement.kind](consumer, values):
        yield replace(about(consumer, statement, more), kind=kind)


def _streams_state(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """A thread of Streams that stops running to give up or take over tasks: all that it says of a rebalance where its
    consumer's own lines are not in the log."""
    before, state = values["state_before"], values["state"]
    if before == "RUNNING" and state in _REBALANCING and consumer.generation == -1:
        yield replace(about(consumer, statement, {}), kind="rejoin_requested")
    if state == _ASSIGNED:
        if before != _ASSIGNED:
            consumer.assigned_at, consumer.ready_said = statement.at_ms, False
        return
    since, consumer.assigned_at = consumer.assigned_at, None
    # Old releases do not log how long the tasks of a thread took.
    if since is None or consumer.ready_said or is_untimed(since):
        return
    if (before, state) == (_ASSIGNED, "RUNNING"):
        yield replace(about(consumer, statement, {"waited_ms": statement.at_ms - since}), kind=TASKS_READY)


def _tasks_assigned(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """All tasks of a thread of Streams after a rebalance."""
    consumer.has_standby = bool(values.get("standby", "").strip())
    yield about(consumer, statement, {})


def _tasks_ready(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    consumer.ready_said = True
    more = {"waited_ms": int(values["waited_ms"]), "problem": values.get("tasks") or None}
    yield replace(about(consumer, statement, more), kind=TASKS_READY)


def _tasks_corrupted(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    # The exception names the changelog's partitions of each task as well.
    tasks = ", ".join(dict.fromkeys(_TASK.findall(values["tasks"])))
    yield replace(about(consumer, statement, {"problem": tasks or None}), kind=TASKS_CORRUPTED)


def _container(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """Partitions of a container of Spring. It has joined again when it gets some after others were given up; those
    that are given up last, as it stops, are no sign of a rebalance."""
    more = {"partitions": partitions_of(values["partitions"])}
    _, _, what = statement.kind.partition("_")
    if what == "assigned" and consumer.gave_up:
        yield replace(about(consumer, statement, {}), kind="rejoin_requested")
    consumer.gave_up = what != "assigned"
    yield replace(about(consumer, statement, more), kind=f"partitions_{what}")


def _topic_assigned(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """ruby-kafka's line for each topic of an assignment; the first of them follows the answer to SyncGroup."""
    if consumer.to_sync:
        consumer.to_sync = False
        yield replace(about(consumer, statement, {}), kind="group_synced")
    numbers = [int(each) for each in values["numbers"].split(", ") if each.isdigit()]
    more = {"partitions": [(values["topic"], number) for number in numbers]}
    yield replace(about(consumer, statement, more), kind="partitions_assigned")


_ASSIGNED: Final = "PARTITIONS_ASSIGNED"
_REBALANCING: Final = ("PARTITIONS_REVOKED", _ASSIGNED, "REBALANCING")
_TASK: Final = re.compile(r"(?<![\w-])\d+_\d+(?![\w-])")
_FRANZ_PARTITIONS: Final = re.compile(r"([^\s,\[\]]+)\[((?:\d{1,9}\b ?)*)\]")


def _epoch(consumer: LoggedConsumer, values: dict[str, Any], statement: Statement) -> Iterator[Statement]:
    """A heartbeat with the member's epoch, or the answer to one: only those with another epoch say anything."""
    epoch, before = int(values["member_epoch"]), consumer.generation
    if epoch == 0 and statement.kind == "epoch_sent":
        # A member that asks to join, for the first time or again.
        consumer.member, consumer.generation = values["member"], -1
        return
    if epoch == before:
        return
    consumer.member, consumer.generation = values["member"], epoch
    if epoch <= 0:
        if before > 0:
            yield replace(about(consumer, statement, {}), kind="group_left")
        return
    if before <= 0:
        yield replace(about(consumer, statement, {"fresh": consumer.fresh, "was": consumer.was}), kind="join_sent")
    kind = "generation_joined" if before <= 0 else "epoch_reached"
    yield replace(about(consumer, statement, {"modern": True}), kind=kind)
    yield replace(about(consumer, statement, {"modern": True}), kind="group_synced")
    consumer.fresh, consumer.was = False, values["member"]


def about(consumer: LoggedConsumer, statement: Statement, more: dict[str, Any]) -> Statement:
    """A statement with the identity that its consumer has by now."""
    client = consumer.client_id
    member = consumer.member or consumer.was
    if client is None and consumer.instance is None and UUID.search(member):
        client = UUID.sub("", member)
    known = {
        "family": consumer.family,
        "consumer": consumer.name,
        "client_id": client,
        "instance": consumer.instance,
        "member": consumer.member,
        "was": consumer.was,
        "generation": consumer.generation,
        **consumer.settings,
        # Recognised by its text alone.
        **({"inferred": True} if statement.values.get("inferred") else {}),
    }
    return replace(statement, group=consumer.group, values={**known, **more})


def partitions_of(text: str) -> list[tuple[str, int]]:
    """Partitions as Java or Python prints them; what is none is left out."""
    if "topic=" in text:
        return [(each["topic"], int(each["partition"])) for each in _PARTITION.finditer(text)]
    found = []
    for part in text.strip("[]{}() \n").split(", "):
        topic, dash, number = part.strip().rpartition("-")
        if dash and number.isdigit() and len(number) < 10:
            found.append((topic, int(number)))
    return found


def _grown(values: dict[str, Any]) -> dict[str, Any]:
    """Topics whose number of partitions changed, from a line that has both. No partitions at all are those of a topic
    whose brokers are away."""
    if "unknown_partitions" in values:
        unknown = values["unknown_partitions"]
        if not isinstance(unknown, list) or not all(isinstance(each, int) for each in unknown) or not unknown:
            return {}
        return {"grown": [[str(values.get("topic")), min(unknown), max(unknown) + 1]]}
    if "topic" in values and "after" in values:
        return {"grown": [[values["topic"], int(values["before"]), int(values["after"])]]}
    if "metadata_before" in values:
        before, after = values["metadata_before"], values["metadata_after"]
    elif "cached metadata has changed from" in values.get("reason", ""):
        before, _, after = values["reason"].partition(" at the beginning of the rebalance to ")
    else:
        return {}
    old, new = _sizes(before), _sizes(after)
    grown = [[topic, old[topic], size] for topic, size in new.items() if 0 < old.get(topic, size) < size]
    return {"grown": grown} if grown else {}


def _sizes(text: str) -> dict[str, int]:
    """Topic to its number of partitions."""
    return {
        name or quoted: len(racks.split(", ")) if racks else int(number or digits or 0)
        for name, racks, number, quoted, digits in _TOPIC_SIZES.findall(text)
        if not name.startswith("version")
    }


_SPECIAL: Final[dict[str, Callable[[LoggedConsumer, dict[str, Any], Statement], Iterator[Statement]]]] = {
    "remark": _nothing,
    "reconciling": _reconciling,
    "member_state": _modern,
    "epoch": _epoch,
    "epoch_sent": _epoch,
    "partition_added": _one_partition,
    "partition_removed": _one_partition,
    "session_begun": _session_begun,
    "consumer_restarting": _nothing,
    "given": _nothing,
    "heartbeat_response": _heartbeat_response,
    "closing": _closing,
    "session_ended": _session_ended,
    "streams_state": _streams_state,
    STREAMS_CLIENT: _streams_state,
    TASKS_ASSIGNED: _tasks_assigned,
    TASKS_READY: _tasks_ready,
    TASKS_CORRUPTED: _tasks_corrupted,
    **dict.fromkeys(STREAMS_READERS, _of_streams),
    "container_assigned": _container,
    "container_revoked": _container,
    "container_lost": _container,
    "topic_assigned": _topic_assigned,
}
_AS_THEY_ARE: Final = ("reason", "problem", "assignor", "topics", "topic", "rest")
