"""Reads the messages of Kafka's group coordinators.

Most forms are those of :mod:`rejoin.journal.kafka_logs.lines`, by which the emulator writes; here are those that are
only read: remarks, and the newer group protocols. A group's or member's id may hold spaces, brackets and dots, so forms
stand on their fixed words and on the end of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from rejoin.journal.kafka_logs.lines import LINES, METADATA
from rejoin.journal.kafka_logs.patterns import compiled_when_used
from rejoin.journal.kafka_logs.share_groups import SHARE_PARTITION_LINES
from rejoin.journal.kafka_logs.template import Template, values_of
from rejoin.journal.kafka_logs.transactions import EXCEPTIONS, TRANSACTION_LINES
from rejoin.pipeline.reading.limits import INT32, INT64

_G: Final = r"(?P<group>.*)"
_GEN: Final = r"(?P<generation>-?\d+)"
_META: Final = Template("member", METADATA).pattern

CLASSIC: Final[tuple[tuple[str, str], ...]] = (
    # --- the phases of a rebalance
    ("remark", rf"Sending empty assignment to member .* of {_G} for generation {_GEN} with no errors"),
    ("remark", rf"Group {_G} is dead, skipping rebalance stage\.?"),
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
        "remark",
        rf"Static Member with unknown member id joins group {_G} in \w+ state\. Created a new member id .* for this "
        r"member and add to the group\.",
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
    ("loaded_modern", rf"Loaded (?P<protocol>consumer|share|streams) group {_G} with (?P<members>\d+) members\."),
    ("loaded_member", rf"Loaded member {_META} in group {_G} with generation {_GEN}\."),
    (
        "loaded_member",
        rf"Static member {_META}\.groupInstanceId of group {_G} loaded with member id .* at generation {_GEN}\.",
    ),
    ("remark", r"Ignored (?:un)?loading (?:of )?metadata .*"),
    ("remark", r"Ignored load completion from .*"),
    ("remark", r"The coordinator \S+ is already (?:loading metadata|active)\."),
    ("remark", r"Cannot load coordinator .*"),
    ("remark", r"(?:Already loading|Not loading|Not removing) offsets and group metadata .*"),
    ("remark", r"Offset load from \S+ already in progress\."),
    ("remark", r"Attempted to load offsets and group metadata from .*, but found no log"),
    ("remark", r"Loaded (?:offsets and group )?metadata from .* with buffer larger .*"),
    ("remark", r"Unknown (?:message key with version|record type) .*"),
    # --- offsets and whole groups
    ("remark", r"Removed \d+ offsets associated with deleted partitions: .*"),
    (
        "offsets_deleted",
        rf"The following offsets of the group {_G} were deleted: (?P<list>.*)\. A total of (?P<offsets>\d+) offsets "
        r"were removed\.",
    ),
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
    ("broker_starting", r"Starting up\.?"),
    ("broker_started", r"Startup complete\.?"),
    ("broker_stopping", r"Shutting down\.?"),
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
    ("unloading_modern", r"Unloaded group metadata for group epoch (?P<epoch>-?\d+)\."),
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
"""Kinds and forms of the texts behind ``[Group g]``, ``[GroupId g]`` or ``[GroupId=g]``."""

_BRACKET_WORDS: Final = (
    r"(?:Static|Dynamic|Pending|Member|Converted|Unloading|Unloaded|Creating|Computed|Bumped|Initializ|Stream|Revok|Step|"
    r"Group|Shut|Valid|Topic|Clear|Skipp|Cannot|No |Target|Session|Assign|Failed|Error|Updat|Configur|Shar|"
    r"Topolog|Remov|Add|The )"
)
_BRACKET: Final = re.compile(
    rf"\[Group(?:Id)?[ =](?P<group>.*?)\](?: |\[MemberId (?P<member>.*?)\] ?)(?P<rest>{_BRACKET_WORDS}.*)", re.DOTALL
)
_PREFIX: Final = re.compile(
    r"\[(?P<who>GroupCoordinator|GroupMetadataManager)(?: (?P<node>\d+)| id=(?P<id>\d+)| brokerId=(?P<broker>\d+))"
    r"(?: topic=\S+ partition=(?P<partition>\d+))?\]:? (?P<rest>.*)",
    re.DOTALL,
)
_LONG: Final = frozenset({"load_ms", "took_ms", "scheduler_ms", "bytes", "session_timeout_ms", "rebalance_timeout_ms"})
_NUMBERS: Final = _LONG | {
    "generation", "epoch", "member_epoch", "local_epoch", "topology_epoch", "previous", "partition",
    "members", "static_members", "offsets", "groups", "records",
}  # fmt: skip
"""Fields that are whole numbers; the others are of at most 32 bits."""
_LONGEST_CLASSIC: Final = 1 << 16
"""Characters of a message. Only what ends with a list can be longer, and some forms take quadratic time to fail."""
_LONGEST_BRACKETED: Final = 1 << 13
_DIGITS: Final = len(str(-(2**63)))
_LOGGERS: Final = ("kafka.coordinator.group.", "org.apache.kafka.coordinator.group.")
_RUNTIME: Final = "org.apache.kafka.coordinator.common.runtime."


class Message(NamedTuple):
    """The content of a line: its kind, the group if it names one, and its other values."""

    kind: str
    group: str | None
    values: dict[str, str]


class Prefix(NamedTuple):
    """The writer: the broker's id and the offsets partition, where the line has them."""

    node: str | None
    partition: int | None
    rest: str


def split_prefix(message: str) -> Prefix:
    """The coordinator's own prefix and what stands behind it."""
    match = _PREFIX.match(message)
    if match is None:
        return Prefix(None, None, message)
    node = match["node"] or match["id"] or match["broker"]
    partition = match["partition"]
    if partition is not None and not _fits("partition", partition):
        return Prefix(None, None, message)
    return Prefix(node, int(partition) if partition else None, match["rest"])


def of_a_coordinator(logger: str | None, message: str) -> bool:
    """Whether a group coordinator said this; share and transaction coordinators use the same runtime."""
    if message.startswith(("[GroupCoordinator ", "[GroupMetadataManager ")):
        return True
    if logger is None:
        return False
    return logger.startswith(_LOGGERS) or (logger.startswith(_RUNTIME) and message.startswith("[group-coordinator-"))


_OF_A_BROKER: Final = tuple(
    (kind, compiled_when_used(form))
    for kind, form in (
        (
            "partition_created",
            r"\[Broker id=(?P<node>\d+)\] Creating new partition (?P<topic>.+)-(?P<number>\d+)(?: with topic id .*)?",
        ),
        (
            "partition_created",
            r"\[Broker id=(?P<node>\d+)\] Expected partition (?P<topic>.+)-(?P<number>\d+) with topic id \S+ to exist, "
            r"but it was missing\. Creating\.\.\.",
        ),
        ("partition_created", r"Created log for partition (?P<topic>\S+)-(?P<number>\d+) in .*"),
        ("broker_starting", r"\[BrokerServer id=(?P<node>\d+)\] Transition from SHUTDOWN to STARTING"),
        ("broker_started", r"\[BrokerServer id=(?P<node>\d+)\] Transition from STARTING to STARTED"),
        ("broker_stopping", r"\[BrokerServer id=(?P<node>\d+)\] Transition from STARTED to SHUTTING_DOWN"),
        ("broker_started", r"\[KafkaServer id=(?P<node>\d+)\] started"),
        ("broker_stopping", r"\[KafkaServer id=(?P<node>\d+)\] shutting down"),
    )
)


def read_broker_message(text: str) -> Message | None:
    """The message of a broker outside its group coordinator: a start, a stop, a new partition."""
    for kind, form in _OF_A_BROKER:
        match = form.fullmatch(text)
        if match is not None:
            return Message(kind, None, values_of(match))
    return None


_OF_SHARE_PARTITIONS: Final = [(each.kind, compiled_when_used(each.pattern)) for each in SHARE_PARTITION_LINES]


def read_share_message(text: str) -> Message | None:
    """The message of a broker about a share-partition that it leads, or about the topic that has their state."""
    if not text.startswith(_BEGINNINGS):
        return None
    cut = _cut(text, _LONGEST_BRACKETED)
    for kind, form in _OF_SHARE_PARTITIONS:
        match = form.fullmatch(cut)
        if match is not None:
            values = values_of(match)
            return Message(kind, values.pop("group", None), values) if _fit(values) else None
    return None


_BEGINNINGS: Final = tuple(dict.fromkeys(each.text.partition("{")[0] for each in SHARE_PARTITION_LINES))


def _by_first_word(forms: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Forms by the word they begin with; those that begin with something else come under the empty word."""
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, form in forms:
        word = re.match(r"[A-Za-z]+(?=[ \\]|$)", form)
        table.setdefault(word[0] if word else "", []).append((kind, compiled_when_used(form)))
    return table


_WORD: Final = re.compile(r"[A-Za-z]+")
_CLASSIC: Final = _by_first_word([*((line.kind, line.pattern) for line in LINES if not line.bracket), *CLASSIC])
_BRACKETED: Final = [
    (kind, compiled_when_used(form))
    for kind, form in (*((line.kind, line.pattern) for line in LINES if line.bracket), *BRACKETED)
]


def read_message(text: str) -> Message | None:
    """A coordinator's message, from its text without the prefix; None for a text that no known version prints."""
    message = _read(_cut(text, _LONGEST_CLASSIC))
    if message is not None and not all(_fits(name, value) for name, value in message.values.items()):
        return None
    return message


def _fits(name: str, value: str) -> bool:
    """Whether a number is one that a broker can have printed."""
    return name not in _NUMBERS or (len(value) <= _DIGITS and int(value) in (INT64 if name in _LONG else INT32))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}."


def _read(text: str) -> Message | None:
    bracket = _BRACKET.match(text)
    if bracket is not None:
        rest = _cut(bracket["rest"], _LONGEST_BRACKETED)
        for kind, form in _BRACKETED:
            match = form.fullmatch(rest)
            if match is not None:
                member = {} if bracket["member"] is None else {"member": bracket["member"]}
                return Message(kind, bracket["group"], {**member, **values_of(match)})
    word = _WORD.match(text)
    for key in (word[0], "") if word is not None else ("",):
        for kind, form in _CLASSIC.get(key, ()):
            match = form.fullmatch(text)
            if match is not None:
                values = values_of(match)
                return Message(kind, values.pop("group", None), values)
    return None


# --- transactions

_OF_TRANSACTIONS: Final = re.compile(
    r"\[(?:TransactionCoordinator id=|Transaction State Manager |Transaction Marker Request Completion Handler |"
    r"ReplicaManager broker=)(?P<node>\d+)\]:? (?P<rest>.*)",
    re.DOTALL,
)
_TRANSACTION_LINES: Final = [(each.kind, compiled_when_used(each.pattern)) for each in TRANSACTION_LINES]
_EXCEPTIONS: Final = [compiled_when_used(each.pattern) for each in EXCEPTIONS]


def read_transaction_message(text: str, more: Iterable[str] = ()) -> Message | None:
    """The message of a line about transactions, with the broker as ``node``; ``more`` are the lines below it."""
    prefix = _OF_TRANSACTIONS.match(text)
    if prefix is None:
        return None
    for kind, form in _TRANSACTION_LINES:
        match = form.fullmatch(prefix["rest"])
        if match is None:
            continue
        values = {"node": prefix["node"], **values_of(match)}
        if kind != "txn_append_refused":
            return Message(kind, None, values) if _fit(values) else None
        below = next(iter(more), "")
        refused = next((found for each in _EXCEPTIONS if (found := each.fullmatch(below)) is not None), None)
        if refused is None:
            return None
        values |= values_of(refused)
        return Message(kind, None, values) if _fit(values) else None
    return None


def _fit(values: dict[str, str]) -> bool:
    """Whether numbers are ones that a broker can have printed."""
    return all(
        len(value) <= _DIGITS and int(value) in (INT64 if name in _OF_64_BITS else INT32)
        for name, value in values.items()
        if name in _OF_64_BITS or name in _OF_32_BITS
    )


_OF_64_BITS: Final = ("producer_id", "offset", "state_epoch", "limit", "in_flight", "load_ms", "scheduler_ms")
_OF_32_BITS: Final = ("producer_epoch", "current_epoch", "coordinator_epoch", "number", "partition", "records")
