"""Log lines of Kafka's group coordinators, version by version, both written and read here.

Texts are those of Kafka 1.1 to 4.4 at the levels that brokers have switched on. Two rows of one kind are two texts;
its range says which versions print it.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.consumer_groups import CONSUMER_GROUP_LINES
from rejoin.journal.kafka_logs.share_groups import SHARE_GROUP_LINES
from rejoin.journal.kafka_logs.streams_groups import STREAMS_GROUP_LINES
from rejoin.journal.kafka_logs.template import JAVA_SINCE, OLDEST, Template, Version

COORDINATOR: Final = "kafka.coordinator.group.GroupCoordinator"
MANAGER: Final = "kafka.coordinator.group.GroupMetadataManager"
GROUP_METADATA: Final = "kafka.coordinator.group.GroupMetadata"
JAVA_MANAGER: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager"
JAVA_SHARD: Final = "org.apache.kafka.coordinator.group.GroupCoordinatorShard"
JAVA_OFFSETS: Final = "org.apache.kafka.coordinator.group.OffsetMetadataManager"
JAVA_RUNTIME: Final = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"

_IN_SCALA: Final = "<-4.0: (__consumer_offsets-{partition})>"
_DOT: Final = "<4.0-:.>"
_REASON: Final = "<3.2-:; client reason: {client_reason}>"
METADATA: Final = (
    "MemberMetadata(memberId={member?}, groupInstanceId={scala_instance}, clientId={client_id?}, "
    "clientHost={client_host?}, sessionTimeoutMs={session_timeout_ms}, rebalanceTimeoutMs={rebalance_timeout_ms}, "
    r"supportedProtocols=List({protocols?})~(?:, ?)?~)"
)
"""A member as Scala prints it."""


def _java(kind: str, text: str, logger: str = "", *, bracket: str = "", variant: str = "") -> Template:
    return Template(kind, text, JAVA_SINCE, logger=logger, bracket=bracket, variant=variant)


def _scala(kind: str, text: str, logger: str = "", since: Version = OLDEST, *, variant: str = "") -> Template:
    return Template(kind, text, since, JAVA_SINCE, logger, variant=variant)


LINES: Final[tuple[Template, ...]] = (
    *STREAMS_GROUP_LINES,
    # --- the phases of a rebalance
    Template(
        "preparing",
        "Preparing to rebalance group {group?}<2.2-: in state {state}> with old generation {generation}"
        f"{_IN_SCALA}<2.2-: (reason: {{reason}})>{_DOT}",
    ),
    Template(
        "stabilized",
        f"Stabilized group {{group}} generation {{generation}}{_IN_SCALA}<2.8-: with {{members}} members>{_DOT}",
    ),
    Template(
        "assigned",
        "Assignment received from leader<3.0-: {leader?}> for group {group} for generation {generation}"
        "<2.8-:. The group has {members} members, {static_members} of which are static.>",
    ),
    Template(
        "without_assignment",
        f"Setting empty assignments for members {{set}} of {{group}} for generation {{generation}}{_DOT}",
        (2, 5),
        level="WARN",
    ),
    Template("emptied", f"Group {{group}} with generation {{generation}} is now empty{_IN_SCALA}{_DOT}"),
    _scala("dead", "Group {group} transitioned to Dead in generation {generation}", MANAGER),
    Template(
        "did_not_join",
        r"Group {group} remove<2.8-:d> dynamic members who haven't joined: {set?}~\.?~",
        (2, 7),
    ),
    Template(
        "nobody_joined",
        f"Group {{group}} could not complete rebalance because no members rejoined{_DOT}",
        (2, 3),
        level="ERROR",
    ),
    # --- members go
    Template("failed", f"Member {{member}} in group {{group}} has failed, removing it from the group{_DOT}"),
    Template(
        "left",
        "Member[group.instance.id {instance?}, member.id {member?}] in group {group} has left, removing it from the "
        "group",
        (2, 4),
        (3, 0),
    ),
    Template("left", "Member {member} in group {group} has left, removing it from the group", (2, 2), (2, 4)),
    _scala(
        "left",
        f"Member {METADATA} has left group {{group}} through explicit `LeaveGroup`<-3.2: request>{_REASON}",
        since=(3, 0),
    ),
    _java(
        "left",
        r"~(?:Dynamic |Static )?~Member {member?}~(?: with instance id (?P<instance>.*?))?~ has left group through "
        f"explicit `LeaveGroup` request{_REASON}",
        bracket="Group ",
    ),
    Template("pending_left", "Pending member {member} is leaving group {group}.", (2, 2), (3, 0)),
    _scala(
        "pending_left",
        "Pending member with memberId={member} has left group {group} through explicit `LeaveGroup` request",
        since=(3, 0),
    ),
    _java(
        "pending_left",
        f"Pending member {{member?}} has left group through explicit `LeaveGroup` request{_REASON}",
        bracket="Group ",
    ),
    Template(
        "pending_expired",
        "Pending member {member} in group {group} has been removed after session timeout expiration.",
        (2, 2),
    ),
    # --- members come
    Template(
        "id_handed_out",
        "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} "
        "and request<4.0-:ing> the member to rejoin with this id.",
        (3, 0),
    ),
    # Kafka: up to 2.8 this is printed before it is decided whether the member must come back with its id.
    Template(
        "id_created",
        "Dynamic Member with unknown member id joins group {group} in {state} state. Created a new member id {member} "
        "for this member and add to the group.",
        (2, 5),
        (4, 0),
    ),
    _java(
        "joined",
        "Dynamic member with unknown member id joins group {group} in state {state}. Created a new member id {member} "
        "and added the member to the group.",
        variant="dynamic",
    ),
    _java(
        "joined",
        "Pending dynamic member with id {member} joins group {group} in {state} state. Adding to the group now.",
        variant="pending",
    ),
    Template(
        "joined",
        "Adding new static member {scala_instance} to group {group} with member id {member}.",
        (2, 5),
        (3, 0),
        variant="static",
    ),
    Template(
        "joined",
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. "
        "Created a new member id {member} for this member and add<4.0-:ed> to the group.",
        (3, 0),
        variant="static",
    ),
    Template(
        "replaced",
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. "
        "Replacing previously mapped member {old} with this groupInstanceId.",
        (3, 0),
    ),
    Template(
        "replaced",
        "Static member {instance} of group {group} with unknown member id rejoins, assigning new member id {member}, "
        "while old member id {old} will be removed.",
        (2, 5),
        (3, 0),
    ),
    Template(
        "replaced",
        "Static member {instance} with unknown member id rejoins, assigning new member id {member}, while old member "
        "{old} will be removed.",
        (2, 3),
        (2, 5),
    ),
    _java(
        "no_rebalance",
        "Static member which joins during {state} stage and doesn't affect the selected protocol will not trigger a "
        "rebalance.",
    ),
    Template(
        "no_rebalance",
        "Static member <2.6-:which >joins during {state} stage <2.6-:and doesn't affect selectProtocol >will not "
        "trigger rebalance.",
        (2, 3),
        (4, 0),
    ),
    _java(
        "fenced",
        "Request memberId={member} for static member with groupInstanceId={instance} is fenced by existing "
        "memberId={current} during operation {operation}",
    ),
    _scala(
        "fenced",
        "Request memberId={member} for static member with groupInstanceId={instance} is fenced by current "
        "memberId={current} during operation {operation}",
        GROUP_METADATA,
        (3, 0),
    ),
    Template(
        "fenced",
        "given member.id {member} is identified as a known static member {instance?},<2.5-: >but not matching the "
        "expected member.id {current?}<2.5-: during {operation}, will respond with instance fenced error>",
        (2, 3),
        (3, 0),
        GROUP_METADATA,
        "ERROR",
    ),
    # --- groups come and go with partitions
    _scala("loading", "Loading group metadata for {group} with generation {generation}"),
    _java("loaded_classic", "Loaded classic group {group} with {members} members."),
    _scala("unloading", "Unloading group metadata for {group} with generation {generation}"),
    _java("unloading", "Unloading group metadata for generation {generation}.", bracket="GroupId="),
    _scala("elected", "Elected as the group coordinator for partition {partition} in epoch {epoch}", since=(2, 8)),
    _scala("resigned", "Resigned as the group coordinator for partition {partition} in epoch {epoch}", since=(2, 8)),
    _scala(
        "load_begins",
        "Scheduling loading of offsets and group metadata from {topic}-{partition}<2.8-: for epoch {epoch}>",
        MANAGER,
    ),
    _java("load_begins", "Scheduling loading of metadata from {topic}-{partition} with epoch {epoch}", JAVA_RUNTIME),
    _scala(
        "load_ends",
        "Finished loading offsets and group metadata from {topic}-{partition} in {load_ms} milliseconds"
        "<2.8-: for epoch {epoch}, of which {scheduler_ms} milliseconds was spent in the scheduler>.",
        MANAGER,
    ),
    _java(
        "load_ends",
        "Finished loading of metadata from {topic}-{partition} with epoch {epoch} in {load_ms}ms where "
        "{scheduler_ms}ms was spent in the scheduler. Loaded {records} records which total to {bytes} bytes.",
        JAVA_RUNTIME,
    ),
    Template("load_failed", "Error loading offsets from {topic}-{partition}", OLDEST, JAVA_SINCE, MANAGER, "ERROR"),
    Template(
        "load_failed",
        r"Failed to load metadata from {topic}-{partition} with epoch {epoch} due to {why?}~\.?~.",
        JAVA_SINCE,
        logger=JAVA_RUNTIME,
        level="ERROR",
    ),
    _scala("unload_begins", "Scheduling unloading of offsets and group metadata from {topic}-{partition}", MANAGER),
    _java(
        "remark",
        "Scheduling unloading of metadata for {topic}-{partition} with epoch {epoch}",
        JAVA_RUNTIME,
        variant="unloading",
    ),
    _java("unload_begins", "Started unloading metadata for {topic}-{partition} with epoch {epoch}.", JAVA_RUNTIME),
    _scala(
        "unload_ends",
        "Finished unloading {topic}-{partition}<2.8-: for coordinator epoch {epoch}>. Removed {offsets} cached offsets "
        "and {groups} cached groups.",
        MANAGER,
    ),
    _java("unload_ends", "Finished unloading metadata for {topic}-{partition} with epoch {epoch}.", JAVA_RUNTIME),
    # --- offsets and whole groups
    _scala("remark", "Removed {offsets} expired offsets in {took_ms} milliseconds.", MANAGER, variant="expired"),
    _scala(
        "deleted",
        "The following groups were deleted: {list?}<1.1-:. A total of {offsets} offsets were removed.>",
        COORDINATOR,
    ),
    _java(
        "deleted",
        "The following groups were deleted: {list?}<1.1-:. A total of {offsets} offsets were removed.>",
        JAVA_SHARD,
    ),
    _scala("simple", "Creating simple consumer group {group} via manual offset commit."),
    _java("simple", "Creating a simple consumer group via manual offset commit.", JAVA_OFFSETS, bracket="GroupId "),
    *CONSUMER_GROUP_LINES,
    *SHARE_GROUP_LINES,
)
"""Every line, in the order in which a reader tries those that begin with the same word."""


def line(kind: str, version: Version, variant: str = "") -> Template | None:
    """The line of a kind that a version prints; none where it is silent."""
    return next((each for each in LINES if (each.kind, each.variant) == (kind, variant) and each.is_in(version)), None)
