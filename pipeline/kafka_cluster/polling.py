"""Takes snapshots of a cluster's groups over Kafka's protocol. It only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from rejoin.client.admin.admin import MOVED, Admin, GroupDescription
from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.client.core.errors import CodedError, KafkaError
from rejoin.client.core.inputs import OffsetReset
from rejoin.client.transports.addresses import check_servers, open_transport, split_servers
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup, ClusterMember, PartitionOffsets
from rejoin.protocol.types import TopicPartition

TIMEOUT_MS: Final = 10_000
_AT_ONCE: Final = 8
"""Number of groups that are requested at the same time."""


class ClusterProblem(Exception):
    """The cluster cannot be asked; the text says why and what to do."""


class ClusterSnapshot(NamedTuple):
    """The groups that answered, by id, and what was wrong with others."""

    at_ms: int
    groups: dict[str, ClusterGroup]
    problems: list[str]
    missing: Sequence[str] = ()
    """Groups that are asked for by name and that the cluster does not have."""


def now_ms() -> int:
    """Milliseconds of the local clock."""
    return int(time.time() * 1_000)


class ClusterPoller:
    """Polls groups, all of them or those that are named."""

    def __init__(
        self, admin: Admin, servers: str, wanted: Collection[str] = (), now: Callable[[], int] = now_ms
    ) -> None:
        self._admin = admin
        self._servers = servers
        self._wanted = wanted
        self._now = now

    @property
    def is_restricted(self) -> bool:
        """Whether only some groups are polled."""
        return bool(self._wanted)

    async def group_ids(self) -> tuple[list[str], list[str]]:
        """The ids of the groups, and the problems of nodes that did not answer. Raises ClusterProblem."""
        try:
            listing = await self._admin.list_reachable_groups()
        except KafkaError as problem:
            if isinstance(problem, CodedError) and problem.error in MOVED:
                return [], [f"{self._servers}: {_text(problem)}"]
            raise self._problem(problem) from None
        found = [group.group_id for group in listing.groups]
        return [each for each in found if not self._wanted or each in self._wanted], list(listing.unanswered)

    async def poll(self) -> ClusterSnapshot:
        """All wanted groups as they are now. Raises ClusterProblem where the cluster does not answer."""
        ids, problems = await self.group_ids()
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(group_id: str) -> ClusterGroup | None:
            async with limit:
                try:
                    described = await self._admin.describe(group_id)
                    committed = await self._admin.committed(group_id)
                except KafkaError as problem:
                    problems.append(f"group {group_id}: {_text(problem)}")
                    return None
            return _snapshot(self._now(), described, committed)

        found = [each for each in await asyncio.gather(*map(one, ids)) if each is not None]
        ends = await self._ends(found, problems)
        groups = {each.group_id: _with_ends(each, ends) for each in found}
        # Where a part of the cluster did not answer, a group may be there all the same.
        missing = [] if problems else [each for each in dict.fromkeys(self._wanted) if each not in groups]
        return ClusterSnapshot(self._now(), groups, problems, missing)

    async def _ends(self, groups: Collection[ClusterGroup], problems: list[str]) -> dict[TopicPartition, int | None]:
        partitions = {partition for group in groups for partition in (*group.offsets, *group.owners)}
        try:
            return await self._admin.offsets(dict.fromkeys(partitions, OffsetReset.LATEST.value))
        except KafkaError as problem:
            problems.append(f"ends of logs: {_text(problem)}")
            return {}

    def _problem(self, problem: KafkaError) -> ClusterProblem:
        return ClusterProblem(
            f"{self._servers}: {_text(problem)}; is a cluster there, and may this client describe its groups? "
            "--bootstrap-server names another address, --command-config its security"
        )


def check_connection(servers: str, config: str | None) -> None:
    """Raises ClusterProblem for addresses and a properties file that cannot be used. Nothing is asked yet."""
    try:
        check_servers(split_servers(servers), security_from(config))
    except (ValueError, WrongOption) as problem:
        raise ClusterProblem(str(problem)) from None


@asynccontextmanager
async def polling(
    servers: str, config: str | None = None, wanted: Collection[str] = ()
) -> AsyncIterator[ClusterPoller]:
    """A poller of the cluster behind ``HOST:PORT,...``, with a properties file. Raises ClusterProblem."""
    try:
        transport = open_transport(split_servers(servers), security=security_from(config))
    except (ValueError, WrongOption) as problem:
        raise ClusterProblem(str(problem)) from None
    try:
        yield ClusterPoller(Admin(transport, TIMEOUT_MS), servers, wanted)
    finally:
        await transport.close()


def _snapshot(at_ms: int, group: GroupDescription, committed: dict[TopicPartition, int]) -> ClusterGroup:
    return ClusterGroup(
        at_ms=at_ms,
        group_id=group.group_id,
        state=group.state,
        protocol=group.assignor or None,
        group_type="classic" if group.group_epoch is None else "consumer",
        epoch=group.group_epoch,
        members=tuple(
            ClusterMember(member.member_id, member.group_instance_id, member.client_id, member.host, member.assignment)
            for member in group.members
        ),
        offsets={partition: PartitionOffsets(offset, None) for partition, offset in committed.items()},
    )


def _with_ends(group: ClusterGroup, ends: dict[TopicPartition, int | None]) -> ClusterGroup:
    none = PartitionOffsets(None, None)
    offsets = {
        partition: PartitionOffsets(group.offsets.get(partition, none).committed, ends.get(partition))
        for partition in sorted({*group.offsets, *group.owners})
    }
    return ClusterGroup(
        group.at_ms, group.group_id, group.state, group.protocol, group.group_type, group.epoch, group.members, offsets
    )


def _text(problem: KafkaError) -> str:
    return problem.error.name if isinstance(problem, CodedError) else str(problem)
