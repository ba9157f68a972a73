"""Why tasks of a streams group moved: members that came, went and came back, and what raised the group epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Row = Mapping[str, Any]

RESTART_MS: Final = 600_000
"""A process that is back within this time was restarted."""
UNKNOWN: Final = "unknown"
RESTART: Final = "restart"
ROLLING: Final = "rolling-restart"
_OF_END: Final = {"session-expiry": "crash", "rebalance-expiry": "crash", "left": "leave", "static-left": "leave"}
_OF_BUMP: Final = {
    "join-new": "join",
    "leave": "leave",
    "session-expiry": "crash",
    "rebalance-expiry": "crash",
    "rejoin-metadata": "metadata",
    "topic-metadata": "topics",
    "settings-changed": "settings",
    "failover": "failover",
}
_FIRST: Final = ("leave", "crash", "join", "metadata", "settings", "topics", "failover")
"""Of several causes of one target the one that moves tasks rather than the others."""


class GroupCauses:
    """Takes in the events of one group that say why its target changes."""

    def __init__(self) -> None:
        self._processes: dict[str, str | None] = {}
        self._instances: dict[str, str | None] = {}
        self._arrivals: list[tuple[int, str | None, str | None]] = []
        """Instant, process and instance id of each member that came."""
        self._departures: list[tuple[int, str | None, str | None]] = []
        self._bumps: list[Row] = []
        self._targets: list[int] = []
        """Epochs of targets."""

    def process_of(self, member: str) -> str | None:
        return self._processes.get(member)

    def take(self, row: Row) -> None:
        """Take in one event."""
        match row["event"]:
            case "streams_member_described":
                is_new = row["member_id"] not in self._processes
                self._processes[row["member_id"]] = row["process_id"]
                self._instances[row["member_id"]] = row["group_instance_id"]
                if is_new:
                    self._arrivals.append((row["at_ms"], row["process_id"], row["group_instance_id"]))
            case "static_member_replaced":
                old = row["other_member_id"]
                process = self._processes.get(old)
                self._processes.setdefault(row["member_id"], process)
                self._instances[row["member_id"]] = row["group_instance_id"]
                self._arrivals.append((row["at_ms"], process, row["group_instance_id"]))
            case "member_removed" | "static_member_left":
                member = row["member_id"]
                instance = row["group_instance_id"] or self._instances.get(member)
                self._departures.append((row["at_ms"], self._processes.get(member), instance))
            case "group_epoch_bumped":
                self._bumps.append(row)
            case "streams_target_computed":
                self._targets.append(row["generation"])

    def of_move(self, end: str, ended: Row, process: str | None, after: Row) -> tuple[str, str | None]:
        """The cause of a move, and the member through whom it began."""
        member = ended["member_id"]
        instance = ended["group_instance_id"] or self._instances.get(member)
        if end == "replaced":
            return RESTART, member
        if end in _OF_END:
            is_back = self._comes_back(ended["at_ms"], process, instance)
            return (RESTART if is_back else _OF_END[end]), member
        found = self._cause_of_epoch(after["member_epoch"] or 0)
        if found is None:
            return UNKNOWN, None
        cause, bump = found
        came = bump["cause_member_id"]
        if cause == "join" and came is not None and self._was_here(bump["at_ms"], came):
            return RESTART, came
        if cause in ("leave", "crash") and came is not None:
            gone = self._processes.get(came)
            if self._comes_back(bump["at_ms"], gone, self._instances.get(came)):
                return RESTART, came
        return cause, came

    def _cause_of_epoch(self, epoch: int) -> tuple[str, Row] | None:
        """The cause of the target with which a member got its tasks: of the bumps since the target before it."""
        targets = sorted({each for each in self._targets if each <= epoch})
        until = targets[-1] if targets else epoch
        since = targets[-2] if len(targets) > 1 else 0
        bumps = [each for each in self._bumps if since < each["generation"] <= until]
        named = [(_OF_BUMP[each["cause"]], each) for each in bumps if each["cause"] in _OF_BUMP]
        return min(named, key=lambda each: _FIRST.index(each[0]), default=None)

    def _comes_back(self, at_ms: int, process: str | None, instance: str | None) -> bool:
        return _is_among(self._arrivals, at_ms, at_ms + RESTART_MS, process, instance)

    def _was_here(self, at_ms: int, member: str) -> bool:
        process, instance = self._processes.get(member), self._instances.get(member)
        return _is_among(self._departures, at_ms - RESTART_MS, at_ms, process, instance)

    def with_rolling(self, moves: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The moves, with restarts of several processes that followed on each other named as one."""
        restarts = [
            (at_ms, process or instance)
            for at_ms, process, instance in self._departures
            if self._comes_back(at_ms, process, instance)
        ]
        rolling = {
            at_ms
            for at_ms, who in restarts
            if any(who != other and abs(at_ms - at) <= RESTART_MS for at, other in restarts)
        }
        for row in moves:
            near = any(abs(row["at_ms"] - at_ms) <= RESTART_MS for at_ms in rolling)
            if row["cause"] == RESTART and near:
                row["cause"] = ROLLING
        return list(moves)


def _is_among(
    known: Iterable[tuple[int, str | None, str | None]],
    from_ms: int,
    to_ms: int,
    process: str | None,
    instance: str | None,
) -> bool:
    return any(
        from_ms <= at_ms <= to_ms
        and ((process is not None and process == other) or (instance is not None and instance == also))
        for at_ms, other, also in known
    )
