"""Pages of each source that there is, for tests that look at them in one browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.report.page import sample
from rejoin.coordinator.testing import GroupCoordinator
from rejoin.coordinator.testing import running as running_node
from rejoin.pipeline.drawn.events import events_of
from rejoin.pipeline.drawn.page import recorded
from rejoin.pipeline.drawn.page import render as render_laboratory
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.page import render as render_report
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.simulation.run import play
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.web.journal import JournalRecording
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.paths import GOLDEN
from tests.pipeline.recorded import events_of_logs

SCENARIO: Final = """\
question: Eight consumers, one of which hangs
horizon: 40s
topics:
  orders: {partitions: 30, records_per_second: 0.1}
groups:
  orders-app: {topics: orders, consumers: 8, session_timeout: 10s, max_poll_interval: 10s}
events:
  - {at: 12s, stuck: {who: orders-app-2, for: 25s}}
  - {at: 15s, scale: {group: orders-app, to: 9}}
"""
_GROUP: Final = "orders-app"
_TITLE: Final = (
    "orders-app-2 did not call poll() for 5 min and left the group, which rebalanced twice: max.poll.interval.ms "
    "is too short for its batches"
)


@asynccontextmanager
async def scenario(_: Path) -> AsyncIterator[str]:
    """A scenario whose drawings are higher than a short window."""
    async with running(FirstScenario("eight", SCENARIO, None), GALLERY) as address:
        yield address


@asynccontextmanager
async def journal(folder: Path) -> AsyncIterator[str]:
    """The journal of the same run."""
    play(scenario_from(SCENARIO), journal=folder / "run.jsonl")
    async with running(JournalRecording(folder / "run.jsonl"), GALLERY) as address:
        yield address


@asynccontextmanager
async def logs(folder: Path) -> AsyncIterator[str]:
    """The page beside a report on consumers' logs."""
    table = events_of_logs(sorted((GOLDEN / "client-logs" / "python" / "aiokafka").glob("*.gz")))
    events = events_of(table, {("logs", "aiokafka")}, 100_000)["logs", "aiokafka"]
    file = folder / "laboratory.html"
    file.write_text(render_laboratory("Consumers' logs", {"aiokafka": recorded(events, 0)}), encoding="utf-8")
    yield file.as_uri()


@asynccontextmanager
async def report(folder: Path) -> AsyncIterator[str]:
    """A report on two groups, with all that a group can have."""
    groups = [sample(partitions=60, rebalances=12, consumers=6), sample(partitions=8, rebalances=3, consumers=2)]
    for group, name in zip(
        groups, (_GROUP, f"{_GROUP}.with-a-name-that-has-no-space-in-it-for-a-long-time"), strict=True
    ):
        group.group_id = name
        group.findings = [finding(group.from_ms, group.to_ms)]
        group.violations = [violation(group.from_ms)] * 2
    others = [{"run_id": "run", "group_id": "audit", "rebalances": 1, "findings": 1, "worst": _TITLE}]
    file = folder / "report.html"
    file.write_text(render_report(Report("What happened", groups, others, files=3, rows_read=1_234)), encoding="utf-8")
    yield file.as_uri()


def finding(from_ms: int, to_ms: int) -> dict[str, Any]:
    line = {"at_ms": from_ms, "source": "client", "node": "orders-2", "event": "poll_timeout_exceeded", "seq": 7}
    return {
        "finding": "max-poll-exceeded",
        "severity": "high",
        "title": _TITLE,
        "text": "Two rebalances followed, and 3 consumers stood still for 4.2 s each.",
        "advice": "Raise max.poll.interval.ms, or lower max.poll.records so that a batch takes less time.",
        "setting": "max.poll.interval.ms",
        "score": 12.5,
        "from_ms": from_ms,
        "to_ms": to_ms,
        "confidence": "exact",
        "evidence": [line | {"file": "logs/orders-2.log", "line": 120}],
    }


def violation(at_ms: int) -> dict[str, Any]:
    return {
        "at_ms": at_ms,
        "kind": "owned-twice",
        "topic": "orders",
        "partition": 3,
        "text": "orders-app-1 and orders-app-2 both owned it in generation 7, for 1.2 s",
        "evidence": [{"file": "logs/orders-2.log", "line": 120}],
    }


@asynccontextmanager
async def node(_: Path) -> AsyncIterator[str]:
    """A running coordinator whose group is stable, and whose clock stands still."""
    async with running_node(clock="virtual", topics={"orders": 12}) as coordinator:
        first = (await _join(coordinator, "")).member_id
        joining = asyncio.create_task(_join(coordinator, first))
        await coordinator.wait_for_group(_GROUP, state="PreparingRebalance")
        await coordinator.advance(6_000)
        generation = (await joining).generation_id
        request = SyncGroupRequest(
            group_id=_GROUP, generation_id=generation, member_id=first, protocol_type="consumer",
            protocol_name="range", assignments=(),
        )  # fmt: skip
        await coordinator.call(request, client_id="a-1")
        await coordinator.advance(3_000)
        yield coordinator.url


async def _join(coordinator: GroupCoordinator, member_id: str) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=_GROUP, session_timeout_ms=30_000, rebalance_timeout_ms=60_000, member_id=member_id,
        protocol_type="consumer", protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )  # fmt: skip
    answer = await coordinator.call(request, client_id="a-1")
    assert isinstance(answer, JoinGroupResponse)
    return answer


SOURCES: Final = {"scenario": scenario, "journal": journal, "logs": logs, "report": report, "node": node}
