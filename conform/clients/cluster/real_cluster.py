"""A real cluster behind a proxy: faults are the proxy's, members and records go past it, and nothing is restarted.

What a broker of ours does to itself is done to its answers here: it leads a group no more where group requests are
answered NOT_COORDINATOR, and it is away where each connection ends with its next request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final, NamedTuple

from rejoin.client.admin.admin import Admin
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.requests import coordinator_found, find_coordinator
from rejoin.client.producer import Producer
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.kafka.broker import Security
from rejoin.client.transports.kafka.transport import KafkaTransport
from rejoin.conform.clients.observed import OF_COORDINATORS
from rejoin.conform.clients.stage import OTHER, PARTITIONS, PlayedNames
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.faults import FaultHandle
from rejoin.coordinator.testing.results import NoAnswer, NotReached, OperationRefused
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from rejoin.protocol.registry import BY_REQUEST, FIND_COORDINATOR, Api

_ASK_MS: Final = 10_000
_LONGEST_JOIN_MS: Final = 60_000
_TRANSACTION: Final = 1
"""The key type of a transactional id in FindCoordinator."""


class StoodBroker(NamedTuple):
    """The whole cluster, as it is stopped and started for a client."""

    broker: int = 1


class RealCluster:
    """A cluster on which one trouble is played, by the methods of a coordinator for tests."""

    def __init__(
        self, proxied: GroupCoordinator, servers: Sequence[str], security: Security, names: PlayedNames
    ) -> None:
        """``proxied`` is the proxy, ``servers`` are those of the cluster."""
        self.names = names
        self._proxied = proxied
        self._transport = KafkaTransport(servers, security=security)
        self._idle: list[KafkaTransport] = []
        self._producer = Producer(transport=self._transport.for_client(), client_id=OTHER)
        self._moved: FaultHandle | None = None
        self._away: list[FaultHandle] = []
        self._values = count()
        self._partitions: dict[str, int] = {}

    @property
    def bootstrap_servers(self) -> str:
        """The address of the proxy."""
        return self._proxied.bootstrap_servers

    # --- the proxy's

    async def add_fault(self, **fields: Any) -> FaultHandle:
        """A fault rule at the proxy."""
        return await self._proxied.add_fault(**fields)

    async def requests(self) -> list[RecordedRequest]:
        """Requests that passed the proxy."""
        return await self._proxied.requests()

    async def mark(self) -> int:
        """The current mark of the proxy."""
        return await self._proxied.mark()

    async def transcript(self, *, claim: str) -> str:
        """The requests as text."""
        return await self._proxied.transcript(claim=claim)

    async def group(self, group_id: str) -> GroupView | None:
        """The group as the cluster describes it."""
        return await self._proxied.group(group_id)

    # --- the cluster's

    async def begin(self) -> None:
        """Create the topics. Raises KafkaError."""
        await self._create(self.names.topic, PARTITIONS)
        await self._create(self.names.output_topic, 1)
        self._partitions[self.names.topic] = PARTITIONS
        await self._producer.start()

    async def _create(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=(), configs=())
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=_ASK_MS)
        response = await self._admin().ask(request, CreateTopicsResponse)
        _check([(each.error_code, each.error_message) for each in response.topics])

    def _admin(self) -> Admin:
        return Admin(self._transport, _ASK_MS)

    async def set_topic(self, topic: str, partitions: int) -> None:
        """Add partitions."""
        wanted = CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=(wanted,), timeout_ms=_ASK_MS, validate_only=False)
        response = await self._admin().ask(request, CreatePartitionsResponse)
        _check([(each.error_code, each.error_message) for each in response.results])
        self._partitions[topic] = partitions

    async def produce(self, topic: str, _: int | None, records: int) -> None:
        """Write so many records to each partition. Raises OperationRefused where the cluster takes none."""
        try:
            for partition in range(self._partitions[topic]):
                for _number in range(records):
                    value = f"{topic}-{partition}@{next(self._values)}"
                    await self._producer.send(topic, value, partition=partition)
            await self._producer.flush()
        except KafkaError as problem:
            raise OperationRefused(str(problem)) from None

    async def call(self, request: Request, *, client_id: str = OTHER) -> Response:
        """Ask the coordinator of what the request is about, past the proxy. Raises NoAnswer."""
        # A JoinGroup may wait: others must not wait behind it on the same connection.
        transport = self._idle.pop() if self._idle else self._transport.for_client()
        try:
            return await self._asked(transport, request, client_id)
        except (KafkaError, TransportError) as problem:
            raise NoAnswer(f"the cluster does not answer {type(request).__name__}: {problem}") from None
        finally:
            self._idle.append(transport)

    async def _asked(self, transport: KafkaTransport, request: Any, client_id: str) -> Response:
        group = getattr(request, "group_id", None)
        key, key_type = (group, 0) if group else (request.transactional_id, _TRANSACTION)
        admin = Admin(transport, _ASK_MS)
        answer = await admin.ask(lambda version: find_coordinator(key, version, key_type), FindCoordinatorResponse)
        newest = min(
            transport.versions.get(FIND_COORDINATOR, FIND_COORDINATOR.max_version), FIND_COORDINATOR.max_version
        )
        found = coordinator_found(answer, key, newest)
        if found.error_code is not ErrorCode.NONE:
            raise NoAnswer(f"the cluster names no coordinator of {key!r}: {found.error_code.name}")
        api = BY_REQUEST[type(request)]
        to = Endpoint(found.node_id, found.host, found.port)
        version = _version_of(api, transport)
        return await transport.send(to, request, version, timeout_ms=_LONGEST_JOIN_MS, client_id=client_id)

    async def kick(self, group_id: str, member_id: str) -> str:
        """Remove a member, as an administrator does. Raises OperationRefused."""
        members = (MemberIdentity(member_id=member_id, reason="removed by rejoin conform-client"),)
        answer: Any = await self.call(LeaveGroupRequest(group_id=group_id, members=members))
        if answer.error_code is not ErrorCode.NONE:
            raise OperationRefused(f"member {member_id}: {answer.error_code.name}")
        return member_id

    # --- what is done to answers

    async def resign(self, *, group: str) -> int:
        """Answer requests of the group NOT_COORDINATOR from now on."""
        self._moved = await self.add_fault(keys=OF_COORDINATORS, group=group, error="NOT_COORDINATOR", count=-1)
        return 0

    async def elect(self, *, partition: int) -> int:
        """Let requests of the group through again."""
        await _remove(self._moved)
        self._moved = None
        return partition

    async def brokers(self) -> list[StoodBroker]:
        """The cluster, as one."""
        return [StoodBroker()]

    async def stop_broker(self, _: int) -> None:
        """End each connection of the client with its next request from now on."""
        self._away = [
            await self.add_fault(keys=OF_COORDINATORS, group=self.names.group, when="drop_request", count=-1),
            await self.add_fault(when="drop_request", count=-1),
        ]

    async def start_broker(self, _: int) -> None:
        """Let requests through again, once the client has lost the connection to its coordinator, or sends nothing."""
        with suppress(NotReached):
            await self._away[0].wait(timeout_ms=_ASK_MS)
        for fault in self._away:
            await _remove(fault)
        self._away = []

    async def stop(self) -> None:
        """Close the connections, and delete the topics and the group as far as the cluster allows."""
        with suppress(KafkaError, OperationRefused):
            await self._producer.close(_ASK_MS)
        with suppress(KafkaError, TransportError, OperationRefused, NoAnswer):
            view = await self.group(self.names.group)
            for member in view.members if view is not None else ():
                await self.kick(self.names.group, member.member_id)
            admin = self._admin()
            await admin.delete_topics([self.names.topic, self.names.output_topic])
            await admin.delete_group(self.names.group)
        for transport in (*self._idle, self._transport):
            await transport.close()


def _version_of(api: Api, transport: KafkaTransport) -> int:
    return min(transport.versions.get(api, api.default_version), api.default_version)


async def _remove(handle: FaultHandle | None) -> None:
    if handle is not None:
        await handle.remove()


def _check(results: Sequence[tuple[ErrorCode, str | None]]) -> None:
    """Raise OperationRefused for the first error."""
    for error, message in results:
        if error is not ErrorCode.NONE:
            raise OperationRefused(f"the cluster refuses a topic: {error.name}{f' ({message})' if message else ''}")


@asynccontextmanager
async def real_cluster(
    proxied: GroupCoordinator, servers: Sequence[str], security: Security, names: PlayedNames
) -> AsyncIterator[RealCluster]:
    """A cluster with the topics of one trouble, which are deleted afterwards. Raises OperationRefused."""
    cluster = RealCluster(proxied, servers, security, names)
    try:
        await cluster.begin()
        yield cluster
    finally:
        await cluster.stop()
