"""Which scripts can be asked of a broker: by the versions that it speaks, and by its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.conform.player.messages import api_key
from rejoin.conform.player.older_versions import version_to_ask
from rejoin.conform.recordings.reading import Json, PackedScript

OF_CLASSIC: Final = frozenset({"JoinGroup"})
OF_CONSUMER: Final = frozenset({"ConsumerGroupHeartbeat"})
OF_TRANSACTIONS: Final = frozenset({"InitProducerId", "TxnOffsetCommit", "Produce", "EndTxn", "WriteTxnMarkers"})
OF_SHARE: Final = frozenset({"ShareGroupHeartbeat"})
OF_STREAMS: Final = frozenset({"StreamsGroupHeartbeat"})
CONCERNS: Final[Mapping[str, frozenset[str]]] = {
    "group.initial.rebalance.delay.ms": OF_CLASSIC,
    "group.consumer.migration.policy": OF_CONSUMER,
    "group.consumer.assignment.interval.ms": OF_CONSUMER,
    "group.share.assignment.interval.ms": OF_SHARE,
    "group.streams.initial.rebalance.delay.ms": OF_STREAMS,
    "group.streams.assignment.interval.ms": OF_STREAMS,
    "group.streams.heartbeat.interval.ms": OF_STREAMS,
    "group.streams.num.standby.replicas": OF_STREAMS,
    "transaction.partition.verification.enable": OF_TRANSACTIONS,
    "num.partitions": frozenset({"CreateTopics", "Metadata"}),
}
"""Settings that show only in the answers to some requests."""
SHOWS_NOWHERE: Final = frozenset(
    {"offsets.topic.num.partitions", "transaction.state.log.num.partitions", "group.coordinator.append.linger.ms"}
    | {"share.coordinator.state.topic.num.partitions", "share.coordinator.snapshot.update.records.per.snapshot"}
    | {"share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr"}
    | {"log.retention.ms", "log.roll.ms", "log.cleaner.backoff.ms", "log.retention.check.interval.ms"}
)
"""Settings that no answer of a script that is played depends on."""
BOUNDS: Final = frozenset({"group.min.session.timeout.ms", "group.max.session.timeout.ms"})
BOUNDS_OF_GROUP_SETTINGS: Final[Mapping[str, str]] = {
    "group.share.min.record.lock.duration.ms": "share.record.lock.duration.ms",
    "group.share.min.session.timeout.ms": "share.session.timeout.ms",
    "group.share.min.heartbeat.interval.ms": "share.heartbeat.interval.ms",
    "group.streams.min.session.timeout.ms": "streams.session.timeout.ms",
    "group.streams.min.heartbeat.interval.ms": "streams.heartbeat.interval.ms",
    "group.streams.max.standby.replicas": "streams.num.standby.replicas",
}
"""Settings of brokers that bound a setting of groups."""
BOUND_TO_TIME: Final[Mapping[str, str]] = {
    "transactions/forgotten/producers-are-forgotten": "Kafka answered within 40 ms, between two checks of expiry",
}
"""Scripts whose outcome is a matter of milliseconds, each with the reason."""
_BROKER: Final = 4
"""The type of a resource of DescribeConfigs. Kafka: ConfigResource.Type.BROKER."""
TRANSACTION_VERSION: Final = "transaction.version"
NEWEST_TRANSACTION_VERSION: Final = 2


@dataclass
class BrokerFeatures:
    """The versions of a broker by API key, its settings as far as it says them, and its levels of features."""

    versions: dict[int, tuple[int, int]]
    settings: dict[str, str] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    keeps_share_state: bool = True
    """Whether there is a coordinator for the state of share-partitions. A default Kafka on one node has none."""


def why_not(script: PackedScript, broker: BrokerFeatures) -> str | None:
    """The reason for which a script is not asked of a broker; None where it is."""
    return (
        script.unplayable
        or BOUND_TO_TIME.get(script.full_name)
        or _missing_version(script, broker)
        or _no_share_state(script, broker)
        or _other_setting(script, broker)
    )


def _no_share_state(script: PackedScript, broker: BrokerFeatures) -> str | None:
    if broker.keeps_share_state or not script.is_brief:
        return None
    return "there is no state topic of share groups: share.coordinator.state.topic.replication.factor may be too high"


def _missing_version(script: PackedScript, broker: BrokerFeatures) -> str | None:
    steps = [step for step in script.header.get("steps", ()) if "claims" in step or "version" in step]
    said = {(str(next(iter(step.values()))), step["version"]) for step in steps if "version" in step}
    for line in script.requests:
        api, version = line["api"], line["version"]
        oldest, newest = broker.versions.get(api_key(api), (0, -1))
        if not script.is_steps:
            version = version_to_ask(line, broker.versions)
        if oldest <= version <= newest or _was_refused(script, line):
            continue
        if newest < 0:
            return f"{api} is not spoken"
        if not script.is_steps or (api, version) in said:
            return f"{api} v{version} is not spoken, v{oldest} to v{newest} are"
    if any("complete" in line.get("do", "") for line in script.lines) and api_key("DescribeTransactions") not in (
        broker.versions
    ):
        return "DescribeTransactions is not spoken"
    return None


def _was_refused(script: PackedScript, line: Json) -> bool:
    """Whether Kafka did not answer this version either."""
    if "answer" in line:
        return bool(line["answer"] == "closed")
    answers = (other for other in script.lines if other.get("n") == line["n"] and "request" not in other)
    answer: Json = next(answers, {})
    return "closed" in answer or _error(answer.get("response")) == 35


def _error(answer: Any) -> Any:
    return answer.get("errorCode") if isinstance(answer, dict) else None


def _other_setting(script: PackedScript, broker: BrokerFeatures) -> str | None:
    asked = {line["api"] for line in script.requests}
    if asked & OF_TRANSACTIONS and not (script.is_steps or script.is_brief):
        wanted = int(script.header.get("features", {}).get(TRANSACTION_VERSION, NEWEST_TRANSACTION_VERSION))
        level = broker.levels.get(TRANSACTION_VERSION, 0)
        if level != wanted:
            return f"{TRANSACTION_VERSION} is {level}, and was {wanted} in the recording"
    for name, value in script.header["settings"].items():
        here = broker.settings.get(name)
        if here in (None, value):
            continue
        shows = _describes_a_broker(script) or (
            name not in SHOWS_NOWHERE
            and asked & CONCERNS.get(name, frozenset(asked))
            and (name not in BOUNDS or _is_between(script, here, value))
            and (name not in BOUNDS_OF_GROUP_SETTINGS or _bounds_another(script, name, here, value))
        )
        if not shows:
            continue
        return f"{name} is {here}, and was {value} in the recording"
    return None


def _describes_a_broker(script: PackedScript) -> bool:
    """Whether the answers are the settings themselves."""
    described = (line["request"]["resources"] for line in script.requests if line["api"] == "DescribeConfigs")
    return any(resource["resourceType"] == _BROKER for resources in described for resource in resources)


def _is_between(script: PackedScript, here: str, recorded: str) -> bool:
    """Whether a script asks for a session timeout that only one of two bounds allows."""
    low, high = sorted((int(here), int(recorded)))
    timeouts = (line["request"].get("sessionTimeoutMs") for line in script.requests)
    return any(timeout is not None and low <= timeout <= high for timeout in timeouts)


def _bounds_another(script: PackedScript, name: str, here: str, recorded: str) -> bool:
    """Whether a script gives a group a setting that only one of two bounds allows."""
    low, high = sorted((int(here), int(recorded)))
    altered = (line["request"]["resources"] for line in script.requests if line["api"] == "IncrementalAlterConfigs")
    configs = (config for resources in altered for resource in resources for config in resource["configs"])
    given = (config["value"] for config in configs if config["name"] == BOUNDS_OF_GROUP_SETTINGS[name])
    return any(value is not None and low <= int(value) < high for value in given)
