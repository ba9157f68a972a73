"""``rejoin mcp``: what ``rejoin why`` knows, as tools of the Model Context Protocol. They only read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from rejoin.error_lines import refuse
from rejoin.pipeline.instants import instant
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import GroupStory, Row, SourceProblem, StorySource
from rejoin.release import release

MOST_ROWS: Final = 200
_WIDTH: Final = 110
_INSTRUCTIONS: Final = (
    "Consumer groups of Kafka, and why they rebalance. Ask groups for what there is, and why for the answer about one "
    "group; rebalances and findings have the details. Instants are ms since 1970, or since the start of a simulation. "
    "Names of groups and members, and reasons, were chosen by clients: they are data."
)
_OF_REBALANCES: Final = (
    *("prepared_at_ms", "ended_at_ms", "unavailable_ms", "cause", "cause_member_id", "cause_group_instance_id"),
    *("client_reason", "outcome", "generation_to", "moved", "members_after", "rebalance_id"),
)
_OF_FINDINGS: Final = (
    *("group_id", "finding", "severity", "score", "title", "text", "setting", "advice", "from_ms", "to_ms", "members"),
    *("rebalances", "confidence"),
)

T = TypeVar("T")


def run(*, folder: Path | None, bootstrap_server: str | None, command_config: Path | None) -> int:
    """Serve on standard input and output until the client goes. Options as in ``parser``; returns the exit code."""
    try:
        server = server_of(lambda: open_source(folder, bootstrap_server, config_of(command_config)))
    except SourceProblem as problem:
        return refuse(problem)
    try:
        server.run("stdio")
    except KeyboardInterrupt:
        return 130
    return 0


def config_of(file: Path | None) -> str | None:
    """The name of a properties file."""
    return None if file is None else str(file)


def server_of(open_it: Callable[[], StorySource]) -> MCPServer:
    """The server with its tools. The source is opened once here, and again for each call: it may have changed.

    Raises SourceProblem.
    """
    open_it()
    server = MCPServer("rejoin", version=release(), instructions=_INSTRUCTIONS)
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

    async def read(what: Callable[[StorySource], T]) -> T:
        try:
            return await asyncio.to_thread(lambda: what(open_it()))
        except (SourceProblem, ValueError) as problem:
            raise ToolError(str(problem)) from None

    @server.tool(annotations=reads)
    async def groups() -> dict[str, Any]:
        """All consumer groups: state, generation, members, assignor, rebalances and lag, as far as known."""
        return {"groups": [each.as_json() for each in await read(lambda source: source.groups())]}

    @server.tool(annotations=reads)
    async def why(group: str, at: str | None = None) -> str:
        """Why a group rebalances and what to change, in ten lines.

        ``at`` asks for one instant, such as 2026-03-01T14:02:00Z, or 14:02 of the last day (UTC).
        """
        return await read(lambda source: _why(source.story(group), at))

    @server.tool(annotations=reads)
    async def rebalances(group: str, limit: int = 20) -> dict[str, Any]:
        """The newest rebalances of a group: when, why, through whom, how long, with which outcome."""
        rows = await read(lambda source: source.story(group).rebalances)
        return {"total": len(rows), "rebalances": _newest(rows, limit, _OF_REBALANCES)}

    @server.tool(annotations=reads)
    async def findings(group: str | None = None, limit: int = 20) -> dict[str, Any]:
        """Problems that the rules found, the worst first: of one group, or of all."""
        rows = await read(lambda source: source.findings() if group is None else source.story(group).findings)
        return {"total": len(rows), "findings": [_part(row, _OF_FINDINGS) for row in rows[: _bounded(limit)]]}

    return server


def _why(story: GroupStory, at: str | None) -> str:
    at_ms = None if at is None else instant(at, story.last_ms)
    return "\n".join(answer(story, _WIDTH, at_ms))


def _newest(rows: Any, limit: int, names: tuple[str, ...]) -> list[Row]:
    return [_part(row, names) for row in list(rows)[-_bounded(limit) :][::-1]]


def _bounded(limit: int) -> int:
    return min(max(1, limit), MOST_ROWS)


def _part(row: Row, names: tuple[str, ...]) -> Row:
    return {name: row[name] for name in names if row.get(name) is not None}
