"""The messages of Kafka's group coordinators: one row for each form that some version prints.

Forms were read from the sources of Kafka 1.1 to 4.x. Up to 3.9 the coordinator is the one in Scala, since 4.0 the one
in Java. A group's or member's id may hold spaces, brackets and dots, so forms stand on their fixed words and on the end
of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

_G: Final = r"(?P<group>.*)"
_GEN: Final = r"(?P<generation>-?\d+)"
_PLACE: Final = r"(?: \(__consumer_offsets-(?P<partition>\d+)\))?"
_TP: Final = r"(?P<topic>\S+)-(?P<partition>\d+)"
_EPOCH: Final = r"(?:OptionalInt\[(?P<epoch>-?\d+)\]|OptionalInt\.empty|(?P<plain_epoch>-?\d+))"
_META: Final = (
    r"MemberMetadata\(memberId=(?P<member>.*?), groupInstanceId=(?P<instance>Some\(.*?\)|None), "
    r"clientId=(?P<client_id>.*?), clientHost=(?P<client_host>.*?), sessionTimeoutMs=(?P<session_timeout_ms>\d+), "
    r"rebalanceTimeoutMs=(?P<rebalance_timeout_ms>\d+), supportedProtocols=List\((?P<protocols>.*?)\)(?:, ?)?\)"
)
_REASON: Final = r"(?:; client reason: (?P<client_reason>.*))?"

CLASSIC: Final[tuple[tuple[str, str], ...]] = (
    # --- the phases of a rebalance
    (
        "preparing",
        rf"Preparing to rebalance group (?P<group>.*?)(?: in state (?P<state>\w+))? with old generation {_GEN}{_PLACE}"
        r"(?: \(reason: (?P<reason>.*)\))?\.?",
    ),
    ("stabilized", rf"Stabilized group {_G} generation {_GEN}{_PLACE}(?: with (?P<members>\d+) members)?\.?"),
    (
        "assigned",
        rf"Assignment received from leader(?: (?P<leader>.*?))? for group {_G} for generation {_GEN}"
        r"(?:\. The group has (?P<members>\d+) members, (?P<static_members>\d+) of which are static\.)?",
    ),
    (
        "without_assignment",
        rf"Setting empty assignments for members (?P<set>.*) of {_G} for generation {_GEN}\.?",
    ),
    ("remark", rf"Sending empty assignment to member .* of {_G} for generation {_GEN} with no errors"),
    ("emptied", rf"Group {_G} with generation {_GEN} is now empty{_PLACE}\.?"),
    ("dead", rf"Group {_G} transitioned to Dead in generation {_GEN}"),
    ("remark", rf"Group {_G} is dead, skipping rebalance stage\.?"),
    ("did_not_join", rf"Group {_G} removed? dynamic members who haven't joined: (?P<set>.*?)\.?"),
    ("nobody_joined", rf"Group {_G} could not complete rebalance because no members rejoined\.?"),
    (
        "leader_replaced",
        r"Group leader \[member\.id: (?P<old>.*?), group\.instance\.id: .*?\] failed to join before rebalance timeout, "
        rf"while new leader (?:{_META}|.*) was elected\.",
    ),
    (
        "leader_replaced",
        r"Group leader \[memberId: (?P<old>.*?), groupInstanceId: .*?\] failed to join before the rebalance timeout\. "
        r"Member (?:\w+\(memberId='?(?P<member>.*?)'?, .*|.*) was elected as the new leader\.",
    ),
    ("remark", r"Group leader \[.*\] failed to join before .*because no member joined\."),
    # --- members go
    ("failed", rf"Member (?P<member>.*) in group {_G} has failed, removing it from the group\.?"),
    (
        "left",
        rf"Member\[group\.instance\.id (?P<instance>.*?), member\.id (?P<member>.*?)\] in group {_G} has left, "
        r"removing it from the group",
    ),
    ("left", rf"Member (?P<member>.*) in group {_G} has left, removing it from the group"),
    ("left", rf"Member {_META} has left group {_G} through explicit `LeaveGroup`(?: request)?{_REASON}"),
    (
        "pending_left",
        rf"Pending member with memberId=(?P<member>.*) has left group {_G} through explicit `LeaveGroup` request",
    ),
    ("pending_left", rf"Pending member (?P<member>.*) is leaving group {_G}\."),
    (
        "pending_expired",
        rf"Pending member (?P<member>.*) in group {_G} has been removed after session timeout expiration\.",
    ),
    (
        "remark",
        rf"Received notification of heartbeat expiration for member .* after group {_G} had already been unloaded or "
        r"deleted\.",
    ),
    ("remark", rf"Member id .* was not found in {_G} during heartbeat (?:expiration\.|completion check)"),
    ("remark", rf"Attempt to add rejoining member .* of group {_G} in unexpected group state \w+"),
    (
        "remark",
        rf"Received unexpected notification of sync expiration for {_G} with an old generation -?\d+ while the group "
        r"has -?\d+\.",
    ),
    (
        "remark",
        rf"Received unexpected notification of sync expiration after group {_G} already transitioned to (?:the )?\w+ "
        r"state\.",
    ),
    # --- members come
    (
        "id_handed_out",
        rf"Dynamic member with unknown member id joins group {_G} in (?P<state>\w+) state\. Created a new member id "
        r"(?P<member>.*) and request(?:ing)? the member to rejoin with this id\.",
    ),
    # Kafka: up to 2.8 this is printed before it is decided whether the member must come back with its id.
    (
        "id_created",
        rf"Dynamic Member with unknown member id joins group {_G} in (?P<state>\w+) state\. Created a new member id "
        r"(?P<member>.*) for this member and add to the group\.",
    ),
    (
        "remark",
        rf"Static Member with unknown member id joins group {_G} in \w+ state\. Created a new member id .* for this "
        r"member and add to the group\.",
    ),
    (
        "joined",
        rf"Dynamic member with unknown member id joins group {_G} in state (?P<state>\w+)\. Created a new member id "
        r"(?P<member>.*) and added the member to the group\.",
    ),
    (
        "joined",
        rf"Pending dynamic member with id (?P<member>.*) joins group {_G} in (?P<state>\w+) state\. Adding to the "
        r"group now\.",
    ),
    (
        "joined",
        rf"Adding new static member (?P<instance>Some\(.*?\)|\S+) to group {_G} with member id (?P<member>.*)\.",
    ),
    (
        "joined",
        rf"Static member with groupInstanceId=(?P<instance>.*) and unknown member id joins group {_G} in "
        r"(?P<state>\w+) state\. Created a new member id (?P<member>.*) for this member and add(?:ed)? to the group\.",
    ),
    (
        "replaced",
        rf"Static member with groupInstanceId=(?P<instance>.*) and unknown member id joins group {_G} in "
        r"(?P<state>\w+) state\. Replacing previously mapped member (?P<old>.*) with this groupInstanceId\.",
    ),
    (
        "replaced",
        rf"Static member (?P<instance>.*) of group {_G} with unknown member id rejoins, assigning new member id "
        r"(?P<member>.*), while old member id (?P<old>.*) will be removed\.",
    ),
    (
        "replaced",
        r"Static member (?P<instance>.*) with unknown member id rejoins, assigning new member id (?P<member>.*), "
        r"while old member (?P<old>.*) will be removed\.",
    ),
    (
        "no_rebalance",
        r"Static member (?:which )?joins during (?P<state>\w+) stage (?:and doesn't affect (?:selectProtocol|the "
        r"selected protocol) )?will not trigger (?:a )?rebalance\.",
    ),
    (
        "fenced",
        r"Request memberId=(?P<member>.*) for static member with groupInstanceId=(?P<instance>.*) is fenced by "
        r"(?:current|existing) memberId=(?P<current>.*) during operation (?P<operation>\S+)",
    ),
    (
        "fenced",
        r"given member\.id (?P<member>.*) is identified as a known static member (?P<instance>.*?), ?but not matching "
        r"the expected member\.id (?P<current>.*?)(?: during (?P<operation>\S+), will respond with instance fenced "
        r"error)?",
    ),
    (
        "restored",
        rf"Failed to persist metadata for group {_G} static member (?P<refused>.*) with group instance id "
        r"(?P<instance>.*) due to (?P<error>.*)\. Reverting to old member id (?P<member>.*)\.",
    ),
    ("remark", rf"Failed to persist metadata for group {_G}: (?P<error>.*)"),
    ("remark", rf"Failed to write empty metadata for group {_G}: (?P<error>.*)"),
    (
        "remark",
        rf"Appending metadata message for group {_G} generation \S+ failed due to .*",
    ),
    ("remark", rf"Failed to parse Consumer Protocol .* of group {_G}\. Consumer group coordinator is not aware .*"),
    (
        "remark",
        rf"group: {_G} with leader: .* has received offset commits from consumers as well as transactional "
        r"producers\. .*",
    ),
    # --- groups come and go with partitions
    ("loading", rf"Loading group metadata for {_G} with generation {_GEN}"),
    ("unloading", rf"Unloading group metadata for {_G} with generation {_GEN}"),
    ("loaded_classic", rf"Loaded classic group {_G} with (?P<members>\d+) members\."),
    ("loaded_modern", rf"Loaded (?P<protocol>consumer|share|streams) group {_G} with (?P<members>\d+) members\."),
    ("loaded_member", rf"Loaded member {_META} in group {_G} with generation {_GEN}\."),
    (
        "loaded_member",
        rf"Static member {_META}\.groupInstanceId of group {_G} loaded with member id .* at generation {_GEN}\.",
    ),
    ("elected", rf"Elected as the group coordinator for partition (?P<partition>\d+) in epoch {_EPOCH}"),
    ("resigned", rf"Resigned as the group coordinator for partition (?P<partition>\d+) in epoch {_EPOCH}"),
    ("load_begins", rf"Scheduling loading of offsets and group metadata from {_TP}(?: for epoch {_EPOCH})?"),
    (
        "load_ends",
        rf"Finished loading offsets and group metadata from {_TP} in (?P<load_ms>\d+) milliseconds"
        rf"(?: for epoch {_EPOCH}, of which \d+ milliseconds was spent in the scheduler)?\.",
    ),
    ("unload_begins", rf"Scheduling unloading of offsets and group metadata from {_TP}"),
    (
        "unload_ends",
        rf"Finished unloading {_TP}(?: for coordinator epoch {_EPOCH})?\. Removed \d+ cached offsets and "
        r"(?P<groups>\d+) cached groups\.",
    ),
    ("load_begins", rf"Scheduling loading of metadata from {_TP} with epoch {_EPOCH}"),
    (
        "load_ends",
        rf"Finished loading of metadata from {_TP} with epoch {_EPOCH} in (?P<load_ms>\d+)ms where \d+ms was spent in "
        r"the scheduler\. Loaded (?P<records>\d+) records which total to \d+ bytes\.",
    ),
    ("remark", rf"Scheduling unloading of metadata for {_TP} with epoch {_EPOCH}"),
    ("unload_begins", rf"Started unloading metadata for {_TP} with epoch {_EPOCH}\."),
    ("unload_ends", rf"Finished unloading metadata for {_TP} with epoch {_EPOCH}\."),
    ("remark", r"Ignored (?:un)?loading (?:of )?metadata .*"),
    ("remark", r"Ignored load completion from .*"),
    ("remark", r"The coordinator \S+ is already (?:loading metadata|active)\."),
    ("remark", r"Cannot load coordinator .*"),
    ("remark", r"(?:Already loading|Not loading|Not removing) offsets and group metadata .*"),
    ("remark", r"Offset load from \S+ already in progress\."),
    ("remark", r"Attempted to load offsets and group metadata from .*, but found no log"),
    ("remark", r"Loaded (?:offsets and group )?metadata from .* with buffer larger .*"),
    ("remark", r"Error loading offsets from .*"),
    ("remark", r"Failed to load metadata from .*"),
    ("remark", r"Unknown (?:message key with version|record type) .*"),
    # --- offsets and whole groups
    ("remark", r"Removed \d+ expired offsets in -?\d+ milliseconds\."),
    ("remark", r"Removed \d+ offsets associated with deleted partitions: .*"),
    (
        "deleted",
        r"The following groups were deleted: (?P<list>.*?)(?:\. A total of (?P<offsets>\d+) offsets were removed\.)?",
    ),
    (
        "offsets_deleted",
        rf"The following offsets of the group {_G} were deleted: (?P<list>.*)\. A total of (?P<offsets>\d+) offsets "
        r"were removed\.",
    ),
    ("simple", rf"Creating simple consumer group {_G} via manual offset commit\."),
    ("remark", r"Generated \d+ (?:tombstone )?records .*"),
    ("remark", rf"Failed to append \d+ tombstones to \S+ for expired/deleted offsets and/or metadata for group {_G}\."),
    ("remark", r"BrokerId \d+ is no longer a coordinator for the group .*"),
    ("remark", r"Group .* has moved away from \d+ after transaction marker .*"),
    ("remark", r"Skipped the materialization of transactional offset commit .*"),
    ("remark", r"Could not delete offsets for deleted partitions .*"),
    ("remark", r"Error deleting (?:share )?group .*"),
    ("remark", r"Cannot (?:down|up)grade (?:the )?(?:consumer|classic) group .*"),
    ("remark", r"Removed group .* with an unknown group type .*"),
    ("remark", r"(?:Loaded|onUnloaded) group .*with an unknown group type .*"),
    ("remark", r"Failed to invoke (?:join|sync) callback for .*"),
    # --- the service itself
    (
        "remark",
        r"(?:Starting up|Startup complete|Shutting down|Shutdown complete|Starting|Shutdown completed)\."
        r"?(?: Draining the remaining events\.)?",
    ),
    ("remark", r"\[(?:group|share)-coordinator-[\w-]+\]: .*"),
    ("remark", r"(?:Closing coordinator runtime|Coordinator runtime closed)\."),
    ("remark", r"(?:Group coordinator|Coordinator (?:runtime|loader)) is already (?:running|shutting down)\."),
    ("remark", r"(?:Event processor closed|Shutting down event processor)\."),
    ("remark", r"(?:The|Failed to enqueue) write event .*"),
    ("remark", r"The state machine of the coordinator .*"),
    ("remark", r"(?:Operation|Execution of|Writing records to|Replaying record|Failed to (?:run|reject) event) .*"),
    ("remark", r"Failed to write a batch of .*"),
    ("remark", r"(?:Exiting with|Draining threw) exception\."),
)
"""Kind and form of what is said of classic groups, of partitions and of the coordinator itself."""

_M: Final = r"(?:(?:Static|Dynamic) )?[Mm]ember (?P<member>.*?)"

BRACKETED: Final[tuple[tuple[str, str], ...]] = (
    (
        "left",
        r"(?:(?:Dynamic |Static )?Member) (?P<member>.*?)(?: with instance id (?P<instance>.*?))? has left group "
        rf"through explicit `LeaveGroup` request{_REASON}",
    ),
    (
        "pending_left",
        rf"Pending member (?P<member>.*) has left group through explicit `LeaveGroup` request{_REASON}",
    ),
    ("unloading", rf"Unloading group metadata for generation {_GEN}\."),
    ("unloading_modern", r"Unloaded group metadata for group epoch (?P<epoch>-?\d+)\."),
    ("simple", r"Creating a simple consumer group via manual offset commit\."),
    # --- groups of the newer protocols (KIP-848, KIP-932, KIP-1071)
    (
        "modern_replaced",
        r"Static member with instance id (?P<instance>.*) re-joins the (?P<protocol>\w+) group using the \w+ "
        r"protocol\. Created a new member (?P<member>.*) to replace the existing member (?P<old>.*)\.",
    ),
    (
        "modern_id",
        r"Dynamic member with unknown member id joins the (?P<protocol>\w+) group\. Created a new member id "
        r"(?P<member>.*) and requesting the member to rejoin with this id\.",
    ),
    (
        "modern_joined",
        rf"{_M}(?: with instance id (?P<instance>.*?))? joins the (?P<protocol>\w+) group"
        r"(?: using the \w+ protocol)?\.",
    ),
    (
        "modern_away",
        rf"{_M} with instance id (?P<instance>.*?) temporarily left the (?P<protocol>\w+) group\.",
    ),
    ("modern_left", rf"{_M}(?: with instance id (?P<instance>.*?))? left the (?P<protocol>\w+) group\."),
    ("modern_fenced", rf"{_M} fenced from the group because (?P<why>.*?)\.+"),
    (
        "fenced",
        r"Static member (?P<member>.*) with instance id (?P<instance>.*) is fenced by existing member "
        r"(?P<current>.*)\.",
    ),
    ("remark", r".* cannot join the group because the instance id is (?:is )?owned by member .*\."),
    ("modern_subscribed", rf"{_M} updated its subscribed (?P<what>.*?) to: .*"),
    ("modern_metadata", r"Computed new (?:subscription metadata|metadata hash).*"),
    ("modern_bumped", r"Bumped (?P<protocol>)(?:streams )?group epoch to (?P<epoch>\d+).*"),
    (
        "modern_assigned",
        r"Computed a new target assignment for epoch (?P<epoch>\d+) with '(?P<assignor>.*?)' assignor(?: in \d+ms)?"
        r"(?:: .*)?\.",
    ),
    (
        "modern_member",
        rf"{_M} new assignment state: epoch=(?P<epoch>-?\d+), previousEpoch=(?P<previous>-?\d+), state=(?P<state>\w+)"
        r".*",
    ),
    ("remark", r".+"),
)
"""The same for what stands behind ``[Group g]``, ``[GroupId g]`` or ``[GroupId=g]``."""

_BRACKET_WORDS: Final = (
    r"(?:Static|Dynamic|Pending|Member|Unloading|Unloaded|Creating|Computed|Bumped|Initializ|Stream|Revok|Step|Group|"
    r"No |Target|Session|Assign|Failed|Error|Updat|Configur|Shar|Topolog|Remov|Add|The )"
)
_BRACKET: Final = re.compile(rf"\[Group(?:Id)?[ =](?P<group>.*?)\] (?P<rest>{_BRACKET_WORDS}.*)", re.DOTALL)
_PREFIX: Final = re.compile(
    r"\[(?P<who>GroupCoordinator|GroupMetadataManager)(?: (?P<node>\d+)| id=(?P<id>\d+)| brokerId=(?P<broker>\d+))"
    r"(?: topic=\S+ partition=(?P<partition>\d+))?\]:? (?P<rest>.*)",
    re.DOTALL,
)
_LOGGERS: Final = ("kafka.coordinator.group.", "org.apache.kafka.coordinator.group.")
_RUNTIME: Final = "org.apache.kafka.coordinator.common.runtime."


class Message(NamedTuple):
    """What a line says: its kind, the group if it names one, and what else stands in it."""

    kind: str
    group: str | None
    values: dict[str, str]


class Prefix(NamedTuple):
    """Who says it: the broker's id and the offsets partition, where the line tells them."""

    node: str | None
    partition: int | None
    rest: str


def split_prefix(message: str) -> Prefix:
    """The coordinator's own prefix and what stands behind it."""
    match = _PREFIX.match(message)
    if match is None:
        return Prefix(None, None, message)
    node = match["node"] or match["id"] or match["broker"]
    return Prefix(node, int(match["partition"]) if match["partition"] else None, match["rest"])


def of_a_coordinator(logger: str | None, message: str) -> bool:
    """Whether a group coordinator said this; share and transaction coordinators use the same runtime."""
    if message.startswith(("[GroupCoordinator ", "[GroupMetadataManager ")):
        return True
    if logger is None:
        return False
    return logger.startswith(_LOGGERS) or (logger.startswith(_RUNTIME) and message.startswith("[group-coordinator-"))


def _by_first_word(forms: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Forms by the word they begin with; those that begin with something else come under the empty word."""
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, form in forms:
        word = re.match(r"[A-Za-z]+(?=[ \\]|$)", form)
        table.setdefault(word[0] if word else "", []).append((kind, re.compile(form, re.DOTALL)))
    return table


_WORD: Final = re.compile(r"[A-Za-z]+")
_CLASSIC: Final = _by_first_word(CLASSIC)
_BRACKETED: Final = [(kind, re.compile(form, re.DOTALL)) for kind, form in BRACKETED]


def read_message(text: str) -> Message | None:
    """What a coordinator's message (without its prefix) says; None for words that no known version prints."""
    bracket = _BRACKET.match(text)
    if bracket is not None:
        for kind, form in _BRACKETED:
            match = form.fullmatch(bracket["rest"])
            if match is not None:
                return Message(kind, bracket["group"], _values(match))
    word = _WORD.match(text)
    for key in (word[0], "") if word is not None else ("",):
        for kind, form in _CLASSIC.get(key, ()):
            match = form.fullmatch(text)
            if match is not None:
                values = _values(match)
                return Message(kind, values.pop("group", None), values)
    return None


def _values(match: re.Match[str]) -> dict[str, Any]:
    values = {name: value for name, value in match.groupdict().items() if value is not None}
    if "plain_epoch" in values:
        values["epoch"] = values.pop("plain_epoch")
    return values
