"""The state as a whole, and what happened."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.admin_actions import SnapshotKey
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.evidence import LogQuery, TranscriptQuery
from rejoin.coordinator.control.sent_requests import RequestsQuery
from rejoin.coordinator.service.http.control_api.answers import (
    MarkAnswer,
    RequestsAnswer,
    ResetAnswer,
    SnapshotAnswer,
)
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, NoFields, TextAnswer
from rejoin.coordinator.service.http.server import CONTROL


def _requests(control: Control, wanted: RequestsQuery, _: str) -> dict[str, Any]:
    return {"requests": [each.shown() for each in control.evidence.requests(wanted)]}


def _transcript(control: Control, wanted: TranscriptQuery, _: str) -> TextAnswer:
    return TextAnswer(control.evidence.transcript(wanted.since, wanted.group, wanted.claim))


def _broker_log(control: Control, wanted: LogQuery, _: str) -> TextAnswer:
    return TextAnswer(control.evidence.broker_log(wanted.kafka, wanted.since, wanted.group))


def _request_log(control: Control, wanted: LogQuery, _: str) -> TextAnswer:
    return TextAnswer(control.evidence.request_log(wanted.kafka, wanted.since, wanted.group))


EVIDENCE: Final = (
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
