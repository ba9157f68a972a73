"""Log lines of Kafka's brokers about streams groups (KIP-1071), both written and read here.

Texts and levels were compared with the classes of 4.2.2, 4.3.1 and 4.4.0, and with the log of a 4.4.0. Most name
behind the group the member whose heartbeat is handled. Targets, loaded groups and conversions have the lines of
:mod:`rejoin.journal.kafka_logs.consumer_groups`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rejoin.journal.kafka_logs.template import Template, Version

SERVICE: Final = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
_TOPICS: Final = "org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager"
_GROUP: Final = "GroupId "
_STATIC: Final = "Static member {member?} with instance id {instance?}"
_STATIC_SINCE: Final = (4, 4)
_FOUND: Final = "Valid topic configuration found in {took_ms}ms"
_READY: Final = f"{_FOUND}, topology epoch {{topology_epoch}} is now initialized."
_MISSING: Final = f"{_FOUND}, but internal topics are missing for topology epoch {{topology_epoch}}: {{topics}}"
_FAILED: Final = "Topic configuration failed for topology epoch {topology_epoch} in {took_ms}ms: {why}"
_OLD_PREFIX: Final = "[GroupId {group?}][MemberId {member?}]"
"""Kafka: 4.2 prints no space behind the prefix of lines about topics."""


def _line(
    kind: str, text: str, variant: str = "streams", *, since: Version = (4, 2), member: bool = True, level: str = "INFO"
) -> Template:
    return Template(kind, text, since, level=level, bracket=_GROUP, variant=variant, names_member=member)


def _topics(text: str, variant: str, level: str = "INFO") -> tuple[Template, Template]:
    old = Template("streams_configured", _OLD_PREFIX + text, (4, 2), (4, 3), _TOPICS, level, variant=variant)
    return old, _line("streams_configured", text, variant, since=(4, 3), level=level)


STREAMS_GROUP_LINES: Final[tuple[Template, ...]] = (
    # --- members
    _line("modern_joined", "Member joins the {protocol} group."),
    _line("modern_joined", f"{_STATIC} joins the {{protocol}} group.", "streams-static", since=_STATIC_SINCE),
    _line(
        "modern_replaced",
        "Static member with instance id {instance?} re-joins the {protocol} group using the streams protocol. Created "
        "a new member {member?} to replace the existing member {old}.",
        since=_STATIC_SINCE,
    ),
    _line("modern_away", f"{_STATIC} temporarily left the {{protocol}} group.", since=_STATIC_SINCE),
    _line("modern_left", f"{_STATIC} left the {{protocol}} group.", "streams-static", since=_STATIC_SINCE),
    _line("modern_left", "Member {member?} left the {protocol} group."),
    _line("modern_fenced", r"Streams member {member?} fenced from the group because {why?}.~\.?~", member=False),
    _line("streams_described", "Member updated its member <4.3-:metadata|metdata> to {described}."),
    _line("streams_stale", "Member joined with stale topology epoch {topology_epoch}"),
    _line(
        "streams_assigned",
        "Member's new assignment state: epoch={member_epoch}, previousEpoch={local_epoch}, state={state}, "
        "assignedTasks={assigned?} and tasksPendingRevocation={pending}.",
    ),
    # --- the topology and its topics
    _line("streams_topology", "Member initialized the topology with epoch {topology_epoch}"),
    _line("streams_configuring", "Configuring the topology {topology_epoch}"),
    *_topics(_READY, "ready"),
    *_topics(_MISSING, "missing"),
    *_topics(_FAILED, "failed", "WARN"),
    # --- epochs
    _line("modern_metadata", "Computed new metadata hash: {metadata_hash}."),
    _line("streams_settings", "Assignment configurations changed to {settings}. Triggering rebalance."),
    _line(
        "modern_bumped",
        "Bumped streams group epoch to {epoch} with metadata hash {metadata_hash} and validated topic epoch "
        "{topology_epoch}.",
    ),
    # --- the end of an application
    _line("streams_shutdown", "Shutdown requested for the streams application."),
    _line("remark", "Clearing shutdown requested for the streams application.", "shutdown-cleared", member=False),
    # --- the initial delay
    _line("remark", "Skipping delayed target assignment: group is empty", "delay-empty", member=False),
    _line(
        "remark",
        "Cannot compute delayed target assignment: configured topology is not present",
        "delay-topology",
        member=False,
        level="WARN",
    ),
    _line("remark", "Group not found during initial rebalance.", "delay-group", member=False, level="WARN"),
    # --- a heartbeat that ends in an exception, with all of its request
    Template(
        "streams_failed",
        "Operation streams-group-heartbeat with StreamsGroupHeartbeatRequestData(groupId='{group?}', "
        "memberId='{member?}',{request?}) hit an unexpected exception: {problem}",
        (4, 2),
        logger=SERVICE,
        level="ERROR",
    ),
)
"""In the order in which a reader tries them."""

ENDPOINTS_UNKNOWN: Final = "No value present."
"""Kafka: the partitions behind endpoints are asked for while topics are missing."""
_ENDPOINT: Final = re.compile(r"userEndpoint=(?:Optional\[)?Endpoint\(host='(?P<host>[^']*)', port=(?P<port>\d{1,5})\)")


# --- values that Kafka prints as Java objects

TaskLists = Mapping[str, Iterable[int]]
_TASK: Final = re.compile(r"(?P<subtopology>.+)-(?P<task>\d{1,9})(?:@-?\d+)?")
_TUPLE: Final = re.compile(
    r"\(active=\[(?P<active>[^\]]*)\], standby=\[(?P<standby>[^\]]*)\], warmup=\[(?P<warmup>[^\]]*)\]\)"
)
_OPTIONAL: Final = r"(?:Optional\[(?P<{0}>.*?)\]|Optional\.empty)"
_DESCRIBED: Final = re.compile(
    rf"StreamsGroupMember\[memberId=.*?, instanceId={_OPTIONAL.format('instance')}, rackId={_OPTIONAL.format('rack')}, "
    r"clientId=(?P<client_id>.*?), clientHost=(?P<client_host>.*?), rebalanceTimeoutMs=(?P<timeout>-?\d{1,10}), "
    r"topologyEpoch=(?P<topology>-?\d{1,10}), processId=(?P<process>.*?), "
    r"userEndpoint=(?:Optional\[.*?\]|Optional\.empty), "
    r"clientTags=\{(?P<tags>.*?)\}, assignedTasks=.*"
)


def tasks_text(active: TaskLists, standby: TaskLists, warmup: TaskLists, epoch: int | None) -> str:
    """Tasks as Kafka prints them; ``epoch`` stands behind active ones, whose own is not in the events."""
    at = "" if epoch is None else f"@{epoch}"
    return f"(active=[{_listed(active, at)}], standby=[{_listed(standby)}], warmup=[{_listed(warmup)}])"


def _listed(tasks: TaskLists, behind: str = "") -> str:
    return ", ".join(f"{each}-{task}{behind}" for each, numbers in tasks.items() for task in numbers)


def read_tasks(text: str) -> dict[str, list[tuple[str, int]]] | None:
    """Active, standby and warm-up tasks from a line; None where the text is none of Kafka's."""
    found = _TUPLE.fullmatch(text)
    if found is None:
        return None
    tasks: dict[str, list[tuple[str, int]]] = {}
    for role, listed in found.groupdict().items():
        matches = [_TASK.fullmatch(each) for each in listed.split(", ") if each]
        tasks[role] = [(each["subtopology"], int(each["task"])) for each in matches if each is not None]
        if len(tasks[role]) < len(matches):
            return None
    return tasks


def described_text(
    member_id: str,
    *,
    instance_id: str | None,
    rack_id: str | None,
    client_id: str,
    client_host: str,
    rebalance_timeout_ms: int,
    topology_epoch: int,
    process_id: str,
    user_endpoint: str | None,
    client_tags: Iterable[str],
) -> str:
    """A member's description as Kafka prints it, without tasks."""
    endpoint = None
    if user_endpoint is not None:
        host, _, port = user_endpoint.rpartition(":")
        endpoint = f"Endpoint(host='{host}', port={port})"
    return (
        f"StreamsGroupMember[memberId={member_id}, memberEpoch=0, previousMemberEpoch=0, state=STABLE, "
        f"instanceId={_optional(instance_id)}, rackId={_optional(rack_id)}, clientId={client_id}, "
        f"clientHost={client_host}, rebalanceTimeoutMs={rebalance_timeout_ms}, topologyEpoch={topology_epoch}, "
        f"processId={process_id}, userEndpoint={_optional(endpoint)}, clientTags={{{', '.join(client_tags)}}}, "
        "assignedTasks=(active=[], standby=[], warmup=[]), "
        "tasksPendingRevocation=(active=[], standby=[], warmup=[])]"
    )


def _optional(value: str | None) -> str:
    return "Optional.empty" if value is None else f"Optional[{value}]"


def read_description(text: str) -> dict[str, Any] | None:
    """A member's description, by the names of the events' fields; None where the text is cut short."""
    found = _DESCRIBED.fullmatch(text)
    if found is None:
        return None
    return {
        "group_instance_id": found["instance"],
        "rack_id": found["rack"],
        "client_id": found["client_id"],
        "client_host": found["client_host"],
        "rebalance_timeout_ms": int(found["timeout"]),
        "topology_epoch": int(found["topology"]),
        "process_id": found["process"],
        "user_endpoint": read_endpoint(text),
        "client_tags": [each for each in found["tags"].split(", ") if each],
    }


def read_endpoint(text: str) -> str | None:
    """The endpoint that a member names in a line, as host and port."""
    found = _ENDPOINT.search(text)
    return None if found is None else f"{found['host']}:{found['port']}"
