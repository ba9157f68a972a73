"""Groups, and the offsets partitions that they are kept in."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.admin_actions import GroupConfigs, MemberKey, PartitionKey
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.waiting import GroupCondition
from rejoin.coordinator.service.http.control_api.answers import (
    GroupAnswer,
    GroupConfigsAnswer,
    LeadingAnswer,
    MemberAnswer,
)
from rejoin.coordinator.service.http.control_api.operation import ControlOperation
from rejoin.coordinator.service.http.server import CONTROL


async def _wait_for_group(control: Control, wanted: GroupCondition, _: str) -> dict[str, Any]:
    view = await control.groups.wait(wanted)
    return {"group": None if view is None else view.model_dump(mode="json", by_alias=False)}


GROUPS: Final = (
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
        CONTROL + "/groups/configs",
        "change settings of a group",
        GroupConfigs,
        GroupConfigsAnswer,
        lambda control, wanted, _: control.actions.set_group(wanted),
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
)
