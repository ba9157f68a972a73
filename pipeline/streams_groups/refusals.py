"""Findings about members that are refused with an error that ends a Java application."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rejoin.pipeline.findings.finding import HIGH, Finding
from rejoin.pipeline.findings.formatting import names, period, times
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.streams_groups.of_run import StreamsGroupOfRun, evidence_of, is_exact

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Refused:
    """Words for one reason."""

    name: str
    title: str
    what: str
    setting: str | None
    advice: str


_REASONS: Final = {
    "endpoints": _Refused(
        "streams-endpoint-before-topics",
        "members with application.server are refused while topics are missing",
        "Kafka 4.4 looks up the partitions behind application.server before it knows the topics, and answers "
        "UNKNOWN_SERVER_ERROR, where a member without an endpoint would be asked to wait.",
        "application.server",
        "create the source topics before the application starts, or leave application.server out until they are there. "
        "The members have to be started again.",
    ),
    "other-topology": _Refused(
        "streams-not-one-application",
        "members with another topology are refused",
        "A group has the topology of its first member, and takes only members with the same one (INVALID_REQUEST). Two "
        "applications have this application.id, or two versions of one whose topologies differ.",
        "application.id",
        "give each application an application.id of its own. To change a topology, stop all instances and delete the "
        "group before the new version starts (kafka-streams-groups.sh --delete; its offsets go with it, so note them): "
        "Kafka 4.4 refuses another topology also while the group is Empty.",
    ),
    "invalid-topology": _Refused(
        "streams-topology-invalid",
        "the topology of members cannot run on any topics",
        "The coordinator found no way to the numbers of partitions, or a subtopology that reads nothing "
        "(STREAMS_INVALID_TOPOLOGY).",
        None,
        "see Topology.describe(): a repartition topic that is read has to be written by a subtopology, or needs a "
        "number of partitions.",
    ),
    "other-type": _Refused(
        "streams-group-of-another-type",
        "members of the streams protocol are refused: the group speaks another one",
        "A group changes to the streams protocol only while it has no members (GROUP_ID_NOT_FOUND), and a consumer "
        "or share group never does.",
        "group.protocol",
        "stop all instances with group.protocol=classic and wait until their sessions have ended; then start those "
        "with group.protocol=streams. Committed offsets stay.",
    ),
    "turned-off": _Refused(
        "streams-groups-turned-off",
        "the cluster serves no streams groups",
        "StreamsGroupHeartbeat was answered with UNSUPPORTED_VERSION: the feature streams.version is 0, or "
        "group.coordinator.rebalance.protocols does not list streams.",
        "streams.version",
        "raise it with kafka-features.sh upgrade --feature streams.version=1 (from Kafka 4.2 on) and list streams in "
        "group.coordinator.rebalance.protocols; or start the application with group.protocol=classic.",
    ),
    "unknown": _Refused(
        "streams-members-refused",
        "members are refused, and their threads end",
        "The member's own log has the error, and no reason: INVALID_REQUEST stands for another topology than the "
        "group's, UNKNOWN_SERVER_ERROR for application.server before all topics are there, among others.",
        None,
        "look at the log of the group's coordinator at that time.",
    ),
    "size": _Refused(
        "streams-group-full",
        "members are refused: the group is full",
        "The group has as many members as group.streams.max.size allows (GROUP_MAX_SIZE_REACHED); each stream thread "
        "is a member.",
        "group.streams.max.size",
        "raise it, or run fewer threads (num.stream.threads).",
    ),
}
NAMES: Final = tuple(each.name for each in _REASONS.values())


def _refused(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """Members that were refused, by the reason."""
    by_reason: dict[str, list[Row]] = defaultdict(list)
    for row in run.changes:
        if row["event"] == "streams_heartbeat_refused":
            by_reason[row["reason"]].append(row)
    for reason, rows in by_reason.items():
        said = _REASONS.get(reason)
        if said is None:
            continue
        members = sorted({row["group_instance_id"] or row["member_id"] or row["client_id"] or "?" for row in rows})
        errors = names(sorted({str(row["error"]) for row in rows}))
        first, last = rows[0], rows[-1]
        yield Finding(
            said.name,
            f"{run.group_id}: {said.title}",
            f"{capital(period(first['at_ms'], last['at_ms']))} {names(members)} "
            f"{'was' if len(members) == 1 else 'were'} refused {times(len(rows))} ({errors}). {said.what} "
            "A Java application ends with this error.",
            0.0,
            first["at_ms"],
            last["at_ms"],
            setting=said.setting,
            advice=said.advice,
            numbers={"times": len(rows)},
            members=members,
            evidence=[evidence_of(row) for row in rows],
            exact=is_exact(rows),
            severity=HIGH,
        )


RULES: Final[tuple[Callable[[StreamsGroupOfRun], Iterator[Finding]], ...]] = (_refused,)
