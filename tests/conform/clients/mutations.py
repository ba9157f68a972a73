"""One rule of this client broken at a time, each judged by a trouble: ``python -m tests.conform.clients.mutations``.

Prints a table with the verdict. The client with all its rules passes each of these troubles, which is played first.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest

from rejoin.client import Consumer, KafkaError
from rejoin.client.core import base_context, reactions, requests
from rejoin.client.core.group import heartbeats, join_attempt, join_loop, lookup, membership
from rejoin.client.core.offsets import commits
from rejoin.client.core.reactions import Reaction
from rejoin.client.core.state.membership import Generation
from rejoin.conform.clients.observed import ClientOutcome
from rejoin.conform.clients.playing import PlayedTrouble, play
from rejoin.conform.clients.stage import GROUP, TOPIC, TimeLimits
from rejoin.conform.clients.troubles import BY_NAME
from rejoin.coordinator.service import logs
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

Break = Callable[[pytest.MonkeyPatch], None]
LIMITS: Final = TimeLimits(start=20, meeting=20, reaction=4, closing=3, away=0.3, held=1.0, watched=0.5)
INTERVALS: Final[dict[str, Any]] = {
    "heartbeat_interval_ms": 200,
    "auto_commit_interval_ms": 200,
    "metadata_max_age_ms": 500,
    "session_timeout_ms": 10_000,
}


@dataclass(frozen=True)
class ClientMutation:
    """A broken rule, and the trouble that must find it. ``settings`` are those of the client."""

    apply: Break
    trouble: str
    settings: Mapping[str, Any]

    @property
    def words(self) -> str:
        return self.apply.__name__.replace("_", " ")


MUTATIONS: Final[list[ClientMutation]] = []
"""Every broken rule, in the order below."""


def found_by(trouble: str, **settings: Any) -> Callable[[Break], Break]:
    """Register a broken rule with the trouble that must find it."""

    def register(mutation: Break) -> Break:
        MUTATIONS.append(ClientMutation(mutation, trouble, settings))
        return mutation

    return register


def _ignore(patch: pytest.MonkeyPatch, api: str, error: ErrorCode, reaction: Reaction = Reaction.IGNORE) -> None:
    """Put another reaction in the place of the right one."""
    patch.setitem(reactions.TABLES, api, {**reactions.TABLES[api], error: reaction})


@found_by("removed")
def a_removed_member_does_not_join_again(patch: pytest.MonkeyPatch) -> None:
    for api in ("Heartbeat", "OffsetCommit"):
        _ignore(patch, api, ErrorCode.UNKNOWN_MEMBER_ID)


@found_by("removed")
def a_removed_member_keeps_its_id(patch: pytest.MonkeyPatch) -> None:
    right = membership.reset

    def wrong(state: Any, ctx: Any, reason: str, *, keep_member_id: bool = False) -> None:
        right(state, ctx, reason, keep_member_id=True)

    patch.setattr(membership, "reset", wrong)


@found_by("new-member")
def a_rebalance_is_ignored(patch: pytest.MonkeyPatch) -> None:
    for api in ("Heartbeat", "OffsetCommit"):
        _ignore(patch, api, ErrorCode.REBALANCE_IN_PROGRESS)


@found_by("new-member")
def a_commit_has_the_generation_before(patch: pytest.MonkeyPatch) -> None:
    right = requests.offset_commit

    def wrong(config: Any, group: str, generation: Any, offsets: Any, *, as_member: bool) -> Any:
        old = Generation(max(1, generation.generation_id - 1), generation.member_id, generation.protocol)
        return right(config, group, old if as_member else generation, offsets, as_member=as_member)

    patch.setattr(requests, "offset_commit", wrong)


@found_by("calm")
def no_heartbeats_are_sent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heartbeats, "_send", lambda *_: None)


@found_by("coordinator-unavailable")
def attempts_follow_each_other_without_a_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base_context.BaseContext, "backoff", lambda *_: 0)


@found_by("coordinator-moves")
def the_coordinator_is_never_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lookup, "forget", lambda *_: None)


@found_by("fenced", group_instance_id="one")
def a_fenced_member_joins_anew(patch: pytest.MonkeyPatch) -> None:
    for api in ("Heartbeat", "OffsetCommit"):
        _ignore(patch, api, ErrorCode.FENCED_INSTANCE_ID, Reaction.FORGET_MEMBERSHIP)


@found_by("close")
def a_closed_member_does_not_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(membership, "leave", lambda *_: None)


@found_by("commit-refused")
def a_refused_commit_ends_all_commits(patch: pytest.MonkeyPatch) -> None:
    right = commits.auto_commit_if_due

    def wrong(state: Any, ctx: Any) -> None:
        if not any(each.error is not None for each in state.commits.completed):
            right(state, ctx)

    patch.setattr(commits, "auto_commit_if_due", wrong)
    patch.setattr(commits, "run_completed", lambda *_: None)


@found_by("illegal-generation")
def an_illegal_generation_is_ignored(patch: pytest.MonkeyPatch) -> None:
    _ignore(patch, "Heartbeat", ErrorCode.ILLEGAL_GENERATION)


@found_by("topic-grown")
def new_partitions_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(join_attempt, "follow_metadata", lambda *_: None)


@found_by("slow-rebalance")
def a_join_is_given_up_after_a_moment(patch: pytest.MonkeyPatch) -> None:
    right = join_loop.advance

    def wrong(state: Any, ctx: Any) -> bool:
        attempt = state.join.attempt
        if attempt is not None and attempt.outcome is None and ctx.now > attempt.started_at + 300:
            state.join.attempt = None
            membership.reset(state, ctx, "gave up")
        return right(state, ctx)

    patch.setattr(join_loop, "advance", wrong)


class OwnClient:
    """This client in this process, until it is closed."""

    def __init__(self, coordinator: GroupCoordinator, settings: Mapping[str, Any]) -> None:
        self.processed: list[tuple[TopicPartition, int]] = []
        self._closing = asyncio.Event()
        self._consumer = Consumer(
            TOPIC,
            bootstrap_servers=coordinator.bootstrap_servers,
            group_id=GROUP,
            auto_offset_reset="earliest",
            **{**INTERVALS, **settings},
        )
        self._task = asyncio.ensure_future(self._run())

    @property
    def problem(self) -> str | None:
        """The end of its task."""
        return "ended" if self._task.done() else None

    async def close(self, seconds: float) -> bool:
        """Close the consumer."""
        self._closing.set()
        await asyncio.wait((self._task,), timeout=seconds)
        return self._task.done()

    async def kill(self) -> None:
        """End the task, and forget how."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, KafkaError, AssertionError):
            await self._task

    async def _run(self) -> None:
        async with self._consumer as consumer:
            while not self._closing.is_set():
                for record in await consumer.poll(100):
                    self.processed.append((TopicPartition(record.topic, record.partition), record.offset))


async def played(mutation: ClientMutation, *, broken: bool, limits: TimeLimits = LIMITS) -> PlayedTrouble:
    """The trouble of a mutation, played with the broken rule or without it."""

    async def start(coordinator: GroupCoordinator) -> OwnClient:
        return OwnClient(coordinator, mutation.settings)

    with pytest.MonkeyPatch.context() as patch:
        if broken:
            mutation.apply(patch)
        return await play(BY_NAME[mutation.trouble], start, limits)


async def rows(only: str) -> bool:
    """Print a row for each broken rule; whether each was found, and none without it."""
    is_good = True
    for mutation in MUTATIONS:
        if only not in mutation.words:
            continue
        right = (await played(mutation, broken=False)).verdict
        wrong = (await played(mutation, broken=True)).verdict
        is_found = (right.outcome, wrong.outcome) == (ClientOutcome.PASSED, ClientOutcome.FAILED)
        is_good = is_good and is_found
        said = wrong.reason if is_found else f"**not found**: {right.outcome} and {wrong.outcome} ({wrong.reason})"
        print(f"| {mutation.words} | `{mutation.trouble}` | {said} |", flush=True)
    return is_good


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Judge this client with one broken rule at a time.")
    parser.add_argument("--only", default="", help="only rules whose names contain this")
    logs.configure("critical")
    print("| broken rule | trouble | verdict |\n|---|---|---|", flush=True)
    return 0 if asyncio.run(rows(parser.parse_args().only)) else 1


if __name__ == "__main__":
    sys.exit(main())
