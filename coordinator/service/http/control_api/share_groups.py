"""Share groups, and the records that they have in flight."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.share_groups import LockKey, PersisterFailure, ShareGroupCondition, SharePartitionQuery
from rejoin.coordinator.service.http.control_api.answers import (
    PersisterFailureAnswer,
    ShareStateAnswer,
    ShareStatesAnswer,
)
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, awaited
from rejoin.coordinator.service.http.server import CONTROL


async def _state(control: Control, which: SharePartitionQuery, _: str) -> dict[str, Any]:
    found = await awaited(control.share_groups.state(which))
    return {"share_partition": None if found is None else found.model_dump(mode="json", by_alias=False)}


def _expire_lock(control: Control, which: LockKey, _: str) -> dict[str, Any]:
    return {"share_partition": control.share_groups.expire_lock(which).model_dump(mode="json", by_alias=False)}


def _release(control: Control, which: LockKey, _: str) -> dict[str, Any]:
    return {"share_partition": control.share_groups.release(which).model_dump(mode="json", by_alias=False)}


def _fail_persister(control: Control, failure: PersisterFailure, _: str) -> dict[str, Any]:
    control.share_groups.fail_persister(failure)
    error = None if failure.error is None else failure.error.name
    return {"group": failure.group, "operation": failure.operation, "error": error, "count": failure.count}


async def _wait(control: Control, wanted: ShareGroupCondition, _: str) -> dict[str, Any]:
    states = await control.share_groups.wait(wanted)
    return {"share_partitions": [each.model_dump(mode="json", by_alias=False) for each in states]}


SHARE_GROUPS: Final = (
    ControlOperation(
        "POST",
        CONTROL + "/share-groups/fail-persister",
        "let requests to the share coordinator fail",
        PersisterFailure,
        PersisterFailureAnswer,
        _fail_persister,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/share-groups/wait",
        "wait until a share group meets conditions",
        ShareGroupCondition,
        ShareStatesAnswer,
        _wait,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/share-groups/state",
        "the records that a share group has in flight in a partition",
        SharePartitionQuery,
        ShareStateAnswer,
        _state,
        in_query=True,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/share-groups/expire-lock",
        "let the lock of a record run out now",
        LockKey,
        ShareStateAnswer,
        _expire_lock,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/share-groups/release",
        "release a record for the member that holds it",
        LockKey,
        ShareStateAnswer,
        _release,
    ),
)
