"""Topics, their records, and the offsets that groups committed."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.admin_actions import CompactionScope, TopicKey, TopicTarget
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.topic_records import NewRecords, RecordsQuery
from rejoin.coordinator.control.waiting import OffsetsCondition
from rejoin.coordinator.core.views import TopicView
from rejoin.coordinator.service.http.control_api.answers import (
    CompactionAnswer,
    OffsetsAnswer,
    RecordsAnswer,
    TopicAnswer,
)
from rejoin.coordinator.service.http.control_api.operation import ControlOperation
from rejoin.coordinator.service.http.server import CONTROL


def _records(control: Control, wanted: RecordsQuery, _: str) -> dict[str, Any]:
    return {"records": [each.shown(wanted.encoding) for each in control.records.read(wanted)]}


async def _wait_for_committed(control: Control, wanted: OffsetsCondition, _: str) -> dict[str, Any]:
    committed = await control.groups.wait_for_committed(wanted)
    return {"offsets": [each.model_dump(mode="json", by_alias=False) for each in committed]}


TOPICS: Final = (
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
        CONTROL + "/topics/delete",
        "delete a topic with its records",
        TopicKey,
        TopicAnswer,
        lambda control, wanted, _: control.actions.delete_topic(wanted),
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
)
