"""Streams groups, and their tasks."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.streams_groups import ShutdownRequest, StreamsGroupCondition, StreamsGroupQuery
from rejoin.coordinator.core.views import StreamsGroupView
from rejoin.coordinator.service.http.control_api.answers import StreamsGroupAnswer
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, awaited
from rejoin.coordinator.service.http.server import CONTROL


def _shown(view: StreamsGroupView | None) -> dict[str, Any]:
    return {"group": None if view is None else view.model_dump(mode="json", by_alias=False)}


async def _state(control: Control, which: StreamsGroupQuery, _: str) -> dict[str, Any]:
    return _shown(await awaited(control.streams_groups.state(which)))


async def _wait(control: Control, wanted: StreamsGroupCondition, _: str) -> dict[str, Any]:
    return _shown(await control.streams_groups.wait(wanted))


async def _shut_down(control: Control, wanted: ShutdownRequest, _: str) -> dict[str, Any]:
    return _shown(await control.streams_groups.shut_down(wanted))


STREAMS_GROUPS: Final = (
    ControlOperation(
        "POST",
        CONTROL + "/streams-groups/wait",
        "wait until a streams group meets conditions",
        StreamsGroupCondition,
        StreamsGroupAnswer,
        _wait,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/streams-groups/state",
        "a streams group with its tasks",
        StreamsGroupQuery,
        StreamsGroupAnswer,
        _state,
        in_query=True,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/streams-groups/shut-down",
        "ask for the end of an application",
        ShutdownRequest,
        StreamsGroupAnswer,
        _shut_down,
    ),
)
