"""A group coordinator for tests: started in milliseconds, with a clock to drive, faults on command, and evidence.

    async with running(clock="virtual", topics={"orders": 3}) as coordinator:
        ...                                         # point consumers at coordinator.url
        await coordinator.wait_for_group("orders-app", state="Stable", members=3)
        await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
        await coordinator.advance(45_000)

:func:`running` runs it on the event loop of the test; :func:`running_in_thread` on one of its own, so that a test that
blocks can use it through :class:`BlockingGroupCoordinator`. For pytest there is the fixture ``group_coordinator``. With
``socket=False`` there is no socket at all: ask with ``call``, or give a consumer the transport of
``rejoin.client.transports.in_process``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rejoin.lazy_names import load

if TYPE_CHECKING:
    from rejoin.coordinator.testing.blocking import BlockingFault, BlockingGroupCoordinator, running_in_thread
    from rejoin.coordinator.testing.coordinator import GroupCoordinator
    from rejoin.coordinator.testing.faults import FaultHandle
    from rejoin.coordinator.testing.results import (
        ClockAdvance,
        EmittedEvent,
        FiredTimer,
        NoAnswer,
        NotReached,
        OperationRefused,
    )
    from rejoin.coordinator.testing.starting import running

__all__ = [
    "BlockingFault",
    "BlockingGroupCoordinator",
    "ClockAdvance",
    "EmittedEvent",
    "FaultHandle",
    "FiredTimer",
    "GroupCoordinator",
    "NoAnswer",
    "NotReached",
    "OperationRefused",
    "running",
    "running_in_thread",
]

# Every pytest run imports this package with the plugin, so its parts are imported when they are first used.
_HOMES: Final = {
    name: f"{__name__}.{part}"
    for part, names in {
        "blocking": ("BlockingFault", "BlockingGroupCoordinator", "running_in_thread"),
        "coordinator": ("GroupCoordinator",),
        "faults": ("FaultHandle",),
        "starting": ("running",),
        "results": ("ClockAdvance", "EmittedEvent", "FiredTimer", "NoAnswer", "NotReached", "OperationRefused"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    return load(__name__, _HOMES, name)
