"""Members of streams groups in the logs of their coordinators, with their tasks, and the topics of their topologies."""

from __future__ import annotations

from typing import Any, Final

from rejoin.journal.kafka_logs.streams_groups import (
    ENDPOINTS_UNKNOWN,
    read_description,
    read_endpoint,
    read_tasks,
)
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED
from rejoin.pipeline.reading.broker_logs.groups.share_partitions import SharePartitions
from rejoin.pipeline.reading.broker_logs.statements import Statement

STREAMS: Final = "streams"
_SOURCES_MISSING: Final = "are missing"
"""In the reason of a topology that cannot run: otherwise topics have wrong numbers of partitions."""
_OF_STREAMS: Final = ("Bumped streams group", "Streams member")
_SPOKEN: Final = {
    "group_instance_id": "instance_id",
    "user_endpoint": "endpoint",
    "client_tags": "tags",
}
"""Fields of a description whose changes events name otherwise."""


class StreamsMembers(SharePartitions):
    """Members of a streams group, from the lines about their heartbeats."""

    _trigger: dict[str, Any] | None
    _type: str = "consumer"
    """The protocol of the group, as its lines name it."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self._described: dict[str, dict[str, Any]] = {}
        self._joining: Statement | None = None
        """A member that joins, whose next line describes it."""

    def _see_type(self, statement: Statement) -> None:
        self._type = statement.values.get("protocol") or self._type

    def _see_streams(self, statement: Statement) -> None:
        """Take in that a line is one that only streams groups have."""
        if any(each in statement.text for each in _OF_STREAMS):
            self._type = STREAMS

    def _caused(self, cause: str, statement: Statement) -> dict[str, Any]:
        member = statement.values["member"]
        instance = statement.values.get("instance") or self._members.get(member)
        return {"cause": cause, "cause_member_id": member, "cause_group_instance_id": instance}

    def _instance_in(self, statement: Statement) -> str | None:
        return statement.values.get("instance")

    def _settle_join(self, statement: Statement | None) -> None:
        """Emit that a member joined, with its client.id where the next line has it."""
        joined, self._joining = self._joining, None
        if joined is None:
            return
        values: dict[str, Any] = {}
        if statement is not None and statement.kind == "streams_described":
            described = read_description(statement.values["described"]) or {}
            if statement.values["member"] == joined.values["member"]:
                names = ("client_id", "client_host", "rebalance_timeout_ms")
                values = {name: described[name] for name in names if name in described}
        instance = joined.values.get("instance")
        self._add(joined, joined.values["member"], instance, EXACT, None, kind=STREAMS)
        self._out[-1] |= values

    def _on_streams_described(self, statement: Statement) -> None:
        self._type = STREAMS
        member = statement.values["member"]
        described = read_description(statement.values["described"])
        if described is None:
            return
        before = self._described.get(member)
        changed = [] if before is None else [name for name in described if before[name] != described[name]]
        self._described[member] = described
        if before is not None:
            self._trigger = self._trigger or self._caused("rejoin-metadata", statement)
        names = [_SPOKEN.get(each, each) for each in changed]
        self._emit(statement, "streams_member_described", member_id=member, changed_fields=names, **described)

    def _on_streams_topology(self, statement: Statement) -> None:
        self._type = STREAMS
        self._emit(statement, "streams_topology_initialized", topology_epoch=int(statement.values["topology_epoch"]))

    def _on_streams_configured(self, statement: Statement) -> None:
        self._type = STREAMS
        values = statement.values
        status = reason = None
        if "topics" in values:
            status, reason = "MISSING_INTERNAL_TOPICS", f"Internal topics are missing: {values['topics']}."
        elif "why" in values:
            reason = values["why"]
            is_missing = reason.rstrip(".").endswith(_SOURCES_MISSING) or reason.startswith("Source topics are missing")
            status = "MISSING_SOURCE_TOPICS" if is_missing else "INCORRECTLY_PARTITIONED_TOPICS"
        epoch = int(values["topology_epoch"])
        about = {"member_id": values["member"], "topology_epoch": epoch, "status": status, "reason": reason}
        self._emit(statement, "streams_topology_configured", **about)

    def _on_streams_settings(self, statement: Statement) -> None:
        self._trigger = {"cause": "settings-changed"}

    def _on_streams_assigned(self, statement: Statement) -> None:
        self._type = STREAMS
        values = statement.values
        assigned, pending = read_tasks(values["assigned"]), read_tasks(values["pending"])
        if assigned is None or pending is None:
            return
        member = values["member"]
        described = self._described.get(member, {})
        roles: dict[str, Any] = {role: _rows(tasks) for role, tasks in assigned.items()}
        self._emit(
            statement,
            "streams_member_assigned",
            member_id=member,
            group_instance_id=described.get("group_instance_id") or self._members.get(member),
            process_id=described.get("process_id"),
            member_epoch=int(values["member_epoch"]),
            previous_member_epoch=int(values["local_epoch"]),
            member_state=values["state"],
            **roles,
            revoking_active=_rows(pending["active"]),
            revoking_standby=_rows(pending["standby"]),
        )

    def _on_streams_shutdown(self, statement: Statement) -> None:
        member = statement.values["member"]
        about = {"member_id": member, "group_instance_id": self._members.get(member)}
        self._emit(statement, "streams_shutdown_requested", **about)

    def _on_streams_failed(self, statement: Statement) -> None:
        values = statement.values
        if values["problem"] != ENDPOINTS_UNKNOWN:
            return
        # The exception alone does not say it: so a member's endpoint is looked for in its request.
        if read_endpoint(values["request"]) is None and not any(
            each["user_endpoint"] for each in self._described.values()
        ):
            return
        about = {"member_id": values["member"], "error": "UNKNOWN_SERVER_ERROR", "reason": "endpoints"}
        self._emit(statement, "streams_heartbeat_refused", INFERRED, **about)


def _rows(tasks: list[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"topic": subtopology, "partition": task} for subtopology, task in tasks]
