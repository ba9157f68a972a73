"""The coordinator behind the kit: where it is, and how its methods reach its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.access.actions import AclChanges, PrincipalChange, QuotaChanges
from rejoin.coordinator.control.admin_actions import (
    CompactionScope,
    GroupConfigs,
    MemberKey,
    PartitionKey,
    SnapshotKey,
    TopicKey,
    TopicTarget,
)
from rejoin.coordinator.control.advertising import AdvertisedAddress
from rejoin.coordinator.control.broker_actions import LedPartition, LinkEnds, NewLeader
from rejoin.coordinator.control.clock_driver import Advance
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.errors import ControlError
from rejoin.coordinator.control.evidence import LogQuery, TranscriptQuery
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.sent_requests import RequestsQuery
from rejoin.coordinator.control.share_groups import LockKey, PersisterFailure, ShareGroupCondition, SharePartitionQuery
from rejoin.coordinator.control.streams_groups import ShutdownRequest, StreamsGroupCondition, StreamsGroupQuery
from rejoin.coordinator.control.topic_records import NewRecords, RecordsQuery
from rejoin.coordinator.control.waiting import GroupCondition, HitCount, OffsetsCondition
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.app import App
from rejoin.coordinator.testing.calls import Calls
from rejoin.coordinator.testing.results import MISTAKES, OperationRefused, hides_traceback, raised
from rejoin.protocol.validation import sentence

T = TypeVar("T")

_ARGUMENTS: Final[dict[str, type[BaseModel]]] = {
    model.__name__: model
    for model in (
        AclChanges,
        Advance,
        AdvertisedAddress,
        CompactionScope,
        FaultRule,
        GroupCondition,
        GroupConfigs,
        HitCount,
        LedPartition,
        LinkEnds,
        LockKey,
        LogQuery,
        MemberKey,
        NewLeader,
        NewRecords,
        OffsetsCondition,
        PartitionKey,
        PersisterFailure,
        PrincipalChange,
        QuotaChanges,
        RecordsQuery,
        RequestsQuery,
        Settings,
        ShareGroupCondition,
        SharePartitionQuery,
        ShutdownRequest,
        SnapshotKey,
        StreamsGroupCondition,
        StreamsGroupQuery,
        TopicKey,
        TopicTarget,
        TranscriptQuery,
    )
}
"""The models that check the arguments of the methods."""

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class RunningCoordinator:
    """A running coordinator, or several brokers: where it is, and what its clock says."""

    def __init__(self, app: App | BrokerCluster, loop: asyncio.AbstractEventLoop, has_socket: bool) -> None:
        assert app.control is not None, "a coordinator for tests is controlled"
        self.app = app
        self._control = app.control
        self.loop = loop
        self.has_socket = has_socket

    @property
    def url(self) -> str:
        """Where clients find it over HTTP."""
        self._check_socket()
        try:
            return self.app.url
        except ControlError as error:
            raise raised(error) from None

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients of any language connect: their ``bootstrap.servers``."""
        self._check_socket()
        return self.app.bootstrap_servers

    def _check_socket(self) -> None:
        if not self.has_socket:
            raise OperationRefused(
                "this coordinator has no socket, and so no address; start it without socket=False, or give consumers "
                "the transport of rejoin.client.transports.in_process"
            )

    @property
    def now_ms(self) -> int:
        """The time on the coordinator's clock, ms since 1970."""
        return self._control.clock.now()


class ControlledCoordinator(RunningCoordinator):
    """A running coordinator with ``async`` methods, which hop over to its event loop and back."""

    def __init__(self, app: App | BrokerCluster, loop: asyncio.AbstractEventLoop, has_socket: bool) -> None:
        super().__init__(app, loop, has_socket)
        self.calls = Calls()

    async def do(self, what: Callable[[Control], Coroutine[Any, Any, T]]) -> T:
        """Do something on the coordinator's own event loop. Raises OperationRefused and NotReached."""
        try:
            if asyncio.get_running_loop() is self.loop:
                return await what(self._control)
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(what(self._control), self.loop))
        except ControlError as error:
            raise raised(error) from None
        except ValidationError as problem:
            raise ValueError(sentence(problem, _ARGUMENTS[problem.title])) from None
        except MISTAKES as error:
            raise error.with_traceback(None) from None

    async def _ask(self, what: Callable[[Control], T]) -> T:
        """Do something that takes no time on the coordinator's own event loop. Raises OperationRefused."""

        async def asked(control: Control) -> T:
            found: Any = what(control)
            # In front of a real cluster a question to it takes time.
            return cast(T, await found if isawaitable(found) else found)

        return await self.do(asked)
