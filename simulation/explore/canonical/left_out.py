"""Parts of a state that make no difference to the future: named by class and attribute, with the reason."""

from __future__ import annotations

from typing import Final

from rejoin.simulation.kernel import Millis

SETTINGS: Final = ("Settings", "ConsumerConfig", "ProducerConfig", "ShareConsumerConfig")
"""Classes of settings of processes."""

IGNORED: Final[dict[tuple[str, str], str]] = {
    ("StepContext", "effects"): "the last step's, which have been carried out",
    ("StepContext", "now"): "set with each step",
    ("BaseContext", "effects"): "the last step's, which have been carried out",
    ("BaseContext", "now"): "set with each step",
    ("SyntheticLog", "started_at"): "topics of worlds do not grow by themselves",
    ("TopicTable", "_newest"): "no instant is before it",
    ("Shard", "_elected_at"): "shown only",
    ("Shard", "_next_append_id"): "a number, larger than all that are in use",
    ("GroupsShard", "_loaded_at"): "for the look for expired offsets, which worlds do not reach",
    ("MemberProgress", "asked_at"): "shown only",
    ("ConsumerMembership", "joined_at"): "shown only",
    ("ConsumerMembership", "target_received_at"): "shown only",
    ("MetadataCache", "version"): "newer or equal to that of a snapshot, whose topics are compared",
    ("MetadataSnapshot", "version"): "two of one version have the same topics",
    ("Requests", "last_id"): "a number, larger than all that are in use",
    ("Actor", "random"): "draws nothing",
    ("Actor", "client_id"): "never changes",
    ("Actor", "number"): "never changes",
    ("NodeActor", "broker"): "never changes",
    ("NodeActor", "timer"): "asks its core",
    ("NodeActor", "watchers"): "observe only",
    ("NodeActor", "_metadata"): "of no consequence",
    ("NodeActor", "_contexts"): "of no consequence",
    ("ConsumerProcess", "timer"): "asks its core",
    ("ConsumerProcess", "user_lane"): "never changes",
    ("ConsumerProcess", "_connections"): "described by themselves",
    ("ProducerClient", "_timer"): "asks its core",
    ("ProducerClient", "_connections"): "described by themselves",
    ("ProducerClient", "requests"): "for reports",
    ("ProducerActor", "acknowledged"): "for checks",
    ("ProducerActor", "failures"): "for checks",
    ("ReaderActor", "_timer"): "asks its core",
    ("ReaderActor", "_connections"): "described by themselves",
    ("ReaderActor", "records"): "for checks",
    ("TransformActor", "handled"): "for checks",
    ("LedSharePartitions", "_last_number"): "a number, larger than all that are in use",
    ("SharePurgatory", "_last_number"): "a number, larger than all that are in use",
    ("ShareState", "create_timestamp"): "for the look for cold states, which worlds do not reach",
    ("ShareState", "write_timestamp"): "for the look for cold states, which worlds do not reach",
    ("TransactionCounts", "initialised"): "for reports",
    ("TransactionCounts", "fenced"): "for reports",
    ("OffsetCommitValue", "commit_timestamp"): "for expiry, which worlds do not reach",
    # Records and transactions
    ("LogBatch", "max_timestamp"): "for retention by age, which worlds do not have",
    ("ProducerStateEntry", "last_timestamp"): "for expiry, which worlds do not reach",
    ("VerificationEntry", "began_at"): "for expiry, which worlds do not reach",
    ("TransactionEvents", "_opened_at"): "for events",
    ("TransactionEvents", "_sampled_at"): "for events",
    ("TxnProduce", "_number"): "a number, larger than all that are in use",
    ("PeerRequests", "_last_id"): "a number, larger than all that are in use",
    ("ProducerCoreState", "last_request_id"): "a number, larger than all that are in use",
}
"""By class and attribute: why it is left out of a form."""

COUNTS: Final[dict[str, int]] = {"MetadataCache.attempts": 5}
"""By class and attribute: more attempts than these are followed by as long a wait."""

METADATA_AGE: Final[Millis] = -1
"""Stands for the longest ``metadata.max.age.ms`` of a world that is ever reached."""

PAST: Final[dict[str, Millis]] = {
    "retry_at": 0,
    "commit_retry_at": 0,
    "next_auto_at": 0,
    "session_expires_at": 0,
    "state_since": 0,
    "current_state_timestamp": 0,
    "assignment_timestamp": 0,
    "_sampled_at": 0,
    "since": 0,
    "version": 0,
    "created_at": 0,
    "deleted_at": 0,
    "ProducerBatch.created_at": 120_001,
    "TopicState.used_at": 300_001,
    "_free_at": 0,
    "until": 0,
    "refreshed_at": METADATA_AGE,
    "assignment_at": 1_000,
}
"""By attribute, or class and attribute: what was longer ago than so many ms was so long ago.

Most are deadlines, which have passed or not.
"""
