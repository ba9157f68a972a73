"""Operations of the control API: each entry is both served and described from here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from rejoin.coordinator.control.admin_actions import CompactionScope, MemberKey, PartitionKey, SnapshotKey, TopicTarget
from rejoin.coordinator.control.broker_actions import LinkEnds, NewLeader, PartitionsQuery
from rejoin.coordinator.control.clock_driver import Advance
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.evidence import LogQuery, TranscriptQuery
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.sent_requests import RequestsQuery
from rejoin.coordinator.control.topic_records import NewRecords, RecordsQuery
from rejoin.coordinator.control.waiting import GroupCondition, HitCount, OffsetsCondition
from rejoin.coordinator.core.views import TopicView
from rejoin.coordinator.service.http.control_answers import (
    AdvanceAnswer,
    BrokerAnswer,
    BrokersAnswer,
    ClockAnswer,
    CompactionAnswer,
    DescriptionAnswer,
    FaultAnswer,
    FaultsAnswer,
    GroupAnswer,
    LeaderAnswer,
    LeadingAnswer,
    MarkAnswer,
    MemberAnswer,
    MovesAnswer,
    OffsetsAnswer,
    PartitionsAnswer,
    RecordsAnswer,
    ReleaseAnswer,
    RemovalAnswer,
    RequestsAnswer,
    ResetAnswer,
    SnapshotAnswer,
    answer_schemas,
)
from rejoin.coordinator.service.http.server import CONTROL


class NoFields(Body):
    """No fields."""


class TextAnswer(NamedTuple):
    """An answer that is not JSON."""

    text: str


class ControlOperation(NamedTuple):
    """One method on one path. ``{id}`` stands for a part of the path, which ``call`` gets behind control and body."""

    method: str
    path: str
    does: str
    body: type[Body]
    answer: type[BaseModel | TextAnswer]
    call: Callable[[Control, Any, str], Any]
    in_query: bool = False

    def described(self) -> dict[str, Any]:
        """The operation with the schemas of its arguments and its answer."""
        schema = self.body.model_json_schema() if self.body.model_fields else None
        arguments = "query" if self.in_query else "body"
        return {
            "method": self.method,
            "path": self.path,
            "does": self.does,
            arguments: schema,
            "answer": self._answer(),
        }

    def _answer(self) -> dict[str, Any]:
        if self.answer is TextAnswer:
            return {"type": "string", "contentMediaType": "text/plain"}
        return {"$ref": f"#/schemas/{self.answer.__name__}"}


def _describe(control: Control, _: NoFields, __: str) -> dict[str, Any]:
    """Every operation with the schemas of its arguments and its answer, and where everything stands."""
    return {**control.status(), **_description()}


@cache
def _description() -> dict[str, Any]:
    answers = [each.answer for each in OPERATIONS if issubclass(each.answer, BaseModel)]
    return {"operations": [each.described() for each in OPERATIONS], "schemas": answer_schemas(answers)}


def _clear_faults(control: Control, _: NoFields, __: str) -> dict[str, Any]:
    removed = [fault.shown() for fault in control.faults.all()]
    control.faults.clear()
    return {"removed": removed}


def _remove_fault(control: Control, _: NoFields, fault_id: str) -> dict[str, Any]:
    found = control.fault(fault_id)
    control.faults.remove(found)
    return found.shown()


def _release(control: Control, _: NoFields, fault_id: str) -> dict[str, Any]:
    found = control.fault(fault_id)
    let_go = found.release()
    return {**found.shown(), "let_go": let_go}


async def _wait_for_fault(control: Control, wanted: HitCount, fault_id: str) -> dict[str, Any]:
    found = control.fault(fault_id)
    await control.wait_for_fault(found, wanted.hits, wanted.timeout_ms)
    return found.shown()


async def _wait_for_group(control: Control, wanted: GroupCondition, _: str) -> dict[str, Any]:
    view = await control.groups.wait(wanted)
    return {"group": None if view is None else view.model_dump(mode="json", by_alias=False)}


async def _wait_for_committed(control: Control, wanted: OffsetsCondition, _: str) -> dict[str, Any]:
    committed = await control.groups.wait_for_committed(wanted)
    return {"offsets": [each.model_dump(mode="json", by_alias=False) for each in committed]}


def _records(control: Control, wanted: RecordsQuery, _: str) -> dict[str, Any]:
    return {"records": [each.shown(wanted.encoding) for each in control.records.read(wanted)]}


def _requests(control: Control, wanted: RequestsQuery, _: str) -> dict[str, Any]:
    return {"requests": [each.shown() for each in control.evidence.requests(wanted)]}


def _transcript(control: Control, wanted: TranscriptQuery, _: str) -> TextAnswer:
    return TextAnswer(control.evidence.transcript(wanted.since, wanted.group, wanted.claim))


def _broker_log(control: Control, wanted: LogQuery, _: str) -> TextAnswer:
    return TextAnswer(control.evidence.broker_log(wanted.kafka, wanted.since, wanted.group))


def _request_log(control: Control, wanted: LogQuery, _: str) -> TextAnswer:
    return TextAnswer(control.evidence.request_log(wanted.kafka, wanted.since, wanted.group))


OPERATIONS: Final = (
    ControlOperation("GET", CONTROL, "this description, and the current state", NoFields, DescriptionAnswer, _describe),
    ControlOperation(
        "GET",
        CONTROL + "/clock",
        "the current time, and the next timer",
        NoFields,
        ClockAnswer,
        lambda control, *_: control.clock_driver.shown(),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/clock",
        "advance the clock; returns the timers that fired",
        Advance,
        AdvanceAnswer,
        lambda control, how, _: control.clock_driver.advance(how),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/faults",
        "all rules, each with its hits",
        NoFields,
        FaultsAnswer,
        lambda control, *_: {"faults": [fault.shown() for fault in control.faults.all()]},
    ),
    ControlOperation(
        "POST",
        CONTROL + "/faults",
        "add a rule, after the existing ones",
        FaultRule,
        FaultAnswer,
        lambda control, rule, _: control.add_fault(rule).shown(),
    ),
    ControlOperation(
        "DELETE",
        CONTROL + "/faults",
        "remove all rules, and release the requests they hold",
        NoFields,
        RemovalAnswer,
        _clear_faults,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/faults/{id}",
        "one rule with its hits",
        NoFields,
        FaultAnswer,
        lambda control, _, fault_id: control.fault(fault_id).shown(),
    ),
    ControlOperation(
        "DELETE",
        CONTROL + "/faults/{id}",
        "remove a rule, and release the requests it holds",
        NoFields,
        FaultAnswer,
        _remove_fault,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/faults/{id}/release",
        "release the requests that a rule with pause holds",
        NoFields,
        ReleaseAnswer,
        _release,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/faults/{id}/wait",
        "wait until a rule has been applied",
        HitCount,
        FaultAnswer,
        _wait_for_fault,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/groups/wait",
        "wait until a group meets conditions",
        GroupCondition,
        GroupAnswer,
        _wait_for_group,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/groups/expire",
        "expire a member's session now",
        MemberKey,
        MemberAnswer,
        lambda control, which, _: control.actions.expire(which),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/groups/kick",
        "remove a member, as an administrator would",
        MemberKey,
        MemberAnswer,
        lambda control, which, _: control.actions.kick(which),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/partitions/resign",
        "resign as leader of an offsets partition",
        PartitionKey,
        LeadingAnswer,
        lambda control, which, _: control.actions.resign(which),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/partitions/elect",
        "become leader of an offsets partition, reloaded from the log",
        PartitionKey,
        LeadingAnswer,
        lambda control, which, _: control.actions.elect(which),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/brokers",
        "the state of each broker",
        NoFields,
        BrokersAnswer,
        lambda control, *_: control.broker_actions.all(),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/stop",
        "stop a broker cleanly: leaders move first",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.stop(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/kill",
        "kill a broker, as kill -9 would",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.kill(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/start",
        "start a broker that is stopped",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.start(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/pause",
        "pause a broker: it accepts connections and does not answer",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.pause(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/resume",
        "resume a paused broker",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.resume(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/cut",
        "cut a broker off from clients, the controller or other brokers",
        LinkEnds,
        BrokerAnswer,
        lambda control, ends, broker: control.broker_actions.cut_off(ends, broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/heal",
        "reconnect a broker to clients, controller and brokers",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.heal(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/partitions/move",
        "move the leader of a partition to another broker",
        NewLeader,
        LeaderAnswer,
        lambda control, wanted, _: control.broker_actions.move(wanted),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/partitions/elect-preferred",
        "elect the preferred leader of every partition",
        NoFields,
        MovesAnswer,
        lambda control, *_: control.broker_actions.elect_preferred(),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/partitions",
        "leaders, epochs and replicas of partitions",
        PartitionsQuery,
        PartitionsAnswer,
        lambda control, wanted, _: control.broker_actions.partitions(wanted),
        in_query=True,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/topics",
        "create a topic, or add partitions",
        TopicTarget,
        TopicView,
        lambda control, wanted, _: control.actions.set_topic(wanted),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/topics/produce",
        "write records, or advance the ends of synthetic logs",
        NewRecords,
        TopicView,
        lambda control, records, _: control.produce(records),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/topics/compact",
        "compact logs now, whatever their dirty ratio",
        CompactionScope,
        CompactionAnswer,
        lambda control, scope, _: control.actions.compact(scope),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/topics/records",
        "the records of a topic",
        RecordsQuery,
        RecordsAnswer,
        _records,
        in_query=True,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/offsets/wait",
        "wait until a group has committed offsets",
        OffsetsCondition,
        OffsetsAnswer,
        _wait_for_committed,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/requests",
        "requests of clients, with their responses",
        RequestsQuery,
        RequestsAnswer,
        _requests,
        in_query=True,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/snapshot",
        "save the whole state as a snapshot",
        NoFields,
        SnapshotAnswer,
        lambda control, *_: control.actions.snapshot(),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/restore",
        "restore a snapshot, its time included",
        SnapshotKey,
        SnapshotAnswer,
        lambda control, which, _: control.actions.restore(which),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/reset",
        "start over, without groups, offsets and rules",
        NoFields,
        ResetAnswer,
        lambda control, *_: control.actions.reset(),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/mark",
        "the current mark, to pass as since",
        NoFields,
        MarkAnswer,
        lambda control, *_: {"mark": control.recorder.mark},
    ),
    ControlOperation(
        "GET",
        CONTROL + "/transcript",
        "what happened since a mark, as a transcript to replay",
        TranscriptQuery,
        TextAnswer,
        _transcript,
        in_query=True,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/broker-log",
        "what happened since a mark, as lines of a broker's server.log",
        LogQuery,
        TextAnswer,
        _broker_log,
        in_query=True,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/request-log",
        "requests since a mark, as lines of kafka-request.log",
        LogQuery,
        TextAnswer,
        _request_log,
        in_query=True,
    ),
)
