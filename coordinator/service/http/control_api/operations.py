"""Everything that the control API can do, from which it is served and described."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.service.http.control_api.access import ACCESS
from rejoin.coordinator.service.http.control_api.addresses import ADDRESSES
from rejoin.coordinator.service.http.control_api.answers import (
    DescriptionAnswer,
    answer_schemas,
)
from rejoin.coordinator.service.http.control_api.brokers import BROKERS
from rejoin.coordinator.service.http.control_api.clock_and_faults import CLOCK_AND_FAULTS
from rejoin.coordinator.service.http.control_api.evidence import EVIDENCE
from rejoin.coordinator.service.http.control_api.groups import GROUPS
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, NoFields
from rejoin.coordinator.service.http.control_api.share_groups import SHARE_GROUPS
from rejoin.coordinator.service.http.control_api.streams_groups import STREAMS_GROUPS
from rejoin.coordinator.service.http.control_api.topics import TOPICS
from rejoin.coordinator.service.http.server import CONTROL


def _describe(control: Control, _: NoFields, __: str) -> dict[str, Any]:
    """Every operation with the schemas of its arguments and its answer, and where everything stands."""
    return {**control.status(), **_description()}


@cache
def _description() -> dict[str, Any]:
    answers = [each.answer for each in OPERATIONS if issubclass(each.answer, BaseModel)]
    return {"operations": [each.described() for each in OPERATIONS], "schemas": answer_schemas(answers)}


OPERATIONS: Final = (
    ControlOperation("GET", CONTROL, "this description, and the current state", NoFields, DescriptionAnswer, _describe),
    *CLOCK_AND_FAULTS,
    *GROUPS,
    *SHARE_GROUPS,
    *STREAMS_GROUPS,
    *ACCESS,
    *ADDRESSES,
    *BROKERS,
    *TOPICS,
    *EVIDENCE,
)
