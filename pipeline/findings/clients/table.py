"""Client × setting × unit × default × since which version: how each client names what Kafka's Java consumer can set.

Keys are the names of Kafka's documentation. One name there means two things: for how long a consumer may go without a
poll, and for how long a rebalance waits for it. The second is :data:`REBALANCE_TIMEOUT` here, since most clients set
only that one.

Sources: ConsumerConfig, StreamsConfig and DistributedConfig of Kafka; CONFIGURATION.md of librdkafka; the keyword
arguments of kafka-python and aiokafka; KafkaJS's consumer; package kgo of franz-go; config.go of sarama;
brod_group_coordinator; ruby-kafka's Client#consumer; Racecar::Config; each in all its tagged versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

SESSION_TIMEOUT: Final = "session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "heartbeat.interval.ms"
POLL_INTERVAL: Final = "max.poll.interval.ms"
REBALANCE_TIMEOUT: Final = "rebalance.timeout.ms"
POLL_RECORDS: Final = "max.poll.records"
PARTITION_BYTES: Final = "max.partition.fetch.bytes"
INSTANCE_ID: Final = "group.instance.id"
ASSIGNORS: Final = "partition.assignment.strategy"
AUTO_COMMIT: Final = "enable.auto.commit"
COMMIT_INTERVAL: Final = "auto.commit.interval.ms"
OFFSET_RESET: Final = "auto.offset.reset"
ISOLATION: Final = "isolation.level"
RACK: Final = "client.rack"
PROTOCOL: Final = "group.protocol"
METADATA_AGE: Final = "metadata.max.age.ms"
GROUP_ID: Final = "group.id"
SETTINGS: Final = (
    *(SESSION_TIMEOUT, HEARTBEAT_INTERVAL, POLL_INTERVAL, REBALANCE_TIMEOUT, POLL_RECORDS, PARTITION_BYTES),
    *(INSTANCE_ID, ASSIGNORS, AUTO_COMMIT, COMMIT_INTERVAL, OFFSET_RESET, ISOLATION, RACK, PROTOCOL),
    *(METADATA_AGE, GROUP_ID),
)

JAVA: Final = "Java"
STREAMS: Final = "Kafka Streams"
CONNECT: Final = "Connect worker"
CONNECTOR: Final = "Connect sink"
SPRING: Final = "Spring Boot"
SMALLRYE: Final = "SmallRye"
LIBRDKAFKA: Final = "librdkafka"
KAFKA_PYTHON: Final = "kafka-python"
AIOKAFKA: Final = "aiokafka"
KAFKAJS: Final = "KafkaJS"
FRANZ_GO: Final = "franz-go"
SARAMA: Final = "sarama"
BROD: Final = "brod"
RUBY_KAFKA: Final = "ruby-kafka"
RACECAR: Final = "racecar"

MS: Final = "ms"
S: Final = "s"
DURATION: Final = "duration"
PLAIN: Final = ""
"""No length of time."""

Value = int | str


class ClientSetting(NamedTuple):
    """A setting of one client."""

    name: str
    unit: str
    defaults: Mapping[str, Value]
    """Default by the version since which it holds, oldest first; the first version is the setting's own. An empty one
    is the client's first that reads groups. Lengths of time are in the setting's unit, of a duration in seconds."""

    @property
    def since(self) -> str:
        """The first version of the client that has the setting; empty where all have it."""
        return next(iter(self.defaults))

    def in_its_unit(self, ms: int) -> str:
        """A length of time as the setting takes it: ``60000``, ``60``, ``60*time.Second``."""
        if self.unit == S:
            return f"{ms / 1_000:g}"
        if self.unit == DURATION:
            return f"{ms // 1_000}*time.Second" if ms % 1_000 == 0 else f"{ms}*time.Millisecond"
        return str(ms)


_UNSET: Final = {"": "not set"}
_JAVA: Final[Mapping[str, ClientSetting]] = {
    SESSION_TIMEOUT: ClientSetting("session.timeout.ms", MS, {"": 30_000, "0.10.1": 10_000, "3.0": 45_000}),
    HEARTBEAT_INTERVAL: ClientSetting("heartbeat.interval.ms", MS, {"": 3_000}),
    POLL_INTERVAL: ClientSetting("max.poll.interval.ms", MS, {"0.10.1": 300_000}),
    REBALANCE_TIMEOUT: ClientSetting("max.poll.interval.ms", MS, {"0.10.1": 300_000}),
    POLL_RECORDS: ClientSetting("max.poll.records", PLAIN, {"0.10.0": 2_147_483_647, "0.10.1": 500}),
    PARTITION_BYTES: ClientSetting("max.partition.fetch.bytes", PLAIN, {"": 1_048_576}),
    INSTANCE_ID: ClientSetting("group.instance.id", PLAIN, {"2.3": "not set"}),
    ASSIGNORS: ClientSetting("partition.assignment.strategy", PLAIN, {"": "range", "3.0": "range, cooperative-sticky"}),
    AUTO_COMMIT: ClientSetting("enable.auto.commit", PLAIN, {"": "true"}),
    COMMIT_INTERVAL: ClientSetting("auto.commit.interval.ms", MS, {"": 5_000}),
    OFFSET_RESET: ClientSetting("auto.offset.reset", PLAIN, {"": "latest"}),
    ISOLATION: ClientSetting("isolation.level", PLAIN, {"0.11": "read_uncommitted"}),
    RACK: ClientSetting("client.rack", PLAIN, {"2.3": "not set"}),
    PROTOCOL: ClientSetting("group.protocol", PLAIN, {"3.7": "classic"}),
    METADATA_AGE: ClientSetting("metadata.max.age.ms", MS, {"": 300_000}),
    GROUP_ID: ClientSetting("group.id", PLAIN, _UNSET),
}


def _java_under(prefix: str, *without: str, **others: Value) -> dict[str, ClientSetting]:
    """The settings of the Java consumer behind a prefix, with defaults of a framework's own."""
    own = {name.replace("_", "."): {"": value} for name, value in others.items()}
    return {
        key: ClientSetting(f"{prefix}{setting.name}", setting.unit, own.get(key, setting.defaults))
        for key, setting in _JAVA.items()
        if key not in without
    }


_SPRING: Final = "spring.kafka.consumer."

TABLE: Final[Mapping[str, Mapping[str, ClientSetting]]] = {
    JAVA: _JAVA,
    STREAMS: _java_under("", ASSIGNORS, AUTO_COMMIT, auto_offset_reset="earliest")
    | {
        POLL_INTERVAL: ClientSetting("max.poll.interval.ms", MS, {"": "no limit", "2.3": 300_000}),
        REBALANCE_TIMEOUT: ClientSetting("max.poll.interval.ms", MS, {"": "no limit", "2.3": 300_000}),
        POLL_RECORDS: ClientSetting("max.poll.records", PLAIN, {"": 1_000}),
        COMMIT_INTERVAL: ClientSetting("commit.interval.ms", MS, {"": 30_000}),
        ISOLATION: ClientSetting("processing.guarantee", PLAIN, {"0.11": "at_least_once"}),
        GROUP_ID: ClientSetting("application.id", PLAIN, _UNSET),
        PROTOCOL: ClientSetting("group.protocol", PLAIN, {"4.1": "classic"}),
    },
    CONNECT: {
        SESSION_TIMEOUT: ClientSetting("session.timeout.ms", MS, {"": 30_000, "0.10.1": 10_000}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat.interval.ms", MS, {"": 3_000}),
        REBALANCE_TIMEOUT: ClientSetting("rebalance.timeout.ms", MS, {"0.10.1": 60_000}),
        METADATA_AGE: ClientSetting("metadata.max.age.ms", MS, {"": 300_000}),
        GROUP_ID: ClientSetting("group.id", PLAIN, _UNSET),
    },
    CONNECTOR: _java_under(
        *("consumer.override.", INSTANCE_ID, AUTO_COMMIT, COMMIT_INTERVAL, GROUP_ID), auto_offset_reset="earliest"
    ),
    SPRING: _java_under(f"{_SPRING}properties.")
    | {
        HEARTBEAT_INTERVAL: ClientSetting(f"{_SPRING}heartbeat-interval", MS, {"": 3_000}),
        POLL_RECORDS: ClientSetting(f"{_SPRING}max-poll-records", PLAIN, {"": 500}),
        AUTO_COMMIT: ClientSetting(f"{_SPRING}enable-auto-commit", PLAIN, {"": "true", "2.2": "false"}),
        COMMIT_INTERVAL: ClientSetting(f"{_SPRING}auto-commit-interval", MS, {"": 5_000}),
        OFFSET_RESET: ClientSetting(f"{_SPRING}auto-offset-reset", PLAIN, {"": "latest"}),
        GROUP_ID: ClientSetting(f"{_SPRING}group-id", PLAIN, _UNSET),
    },
    SMALLRYE: _java_under("mp.messaging.incoming.CHANNEL.", enable_auto_commit="false"),
    LIBRDKAFKA: {
        SESSION_TIMEOUT: ClientSetting("session.timeout.ms", MS, {"": 30_000, "1.0": 10_000, "1.7": 45_000}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat.interval.ms", MS, {"": 1_000, "1.0": 3_000}),
        POLL_INTERVAL: ClientSetting("max.poll.interval.ms", MS, {"1.0": 300_000}),
        REBALANCE_TIMEOUT: ClientSetting("max.poll.interval.ms", MS, {"1.0": 300_000}),
        PARTITION_BYTES: ClientSetting("max.partition.fetch.bytes", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("group.instance.id", PLAIN, {"1.4": "not set"}),
        ASSIGNORS: ClientSetting("partition.assignment.strategy", PLAIN, {"": "range,roundrobin"}),
        AUTO_COMMIT: ClientSetting("enable.auto.commit", PLAIN, {"": "true"}),
        COMMIT_INTERVAL: ClientSetting("auto.commit.interval.ms", MS, {"": 5_000}),
        OFFSET_RESET: ClientSetting("auto.offset.reset", PLAIN, {"": "largest"}),
        ISOLATION: ClientSetting("isolation.level", PLAIN, {"1.2": "read_committed"}),
        RACK: ClientSetting("client.rack", PLAIN, {"1.3": "not set"}),
        PROTOCOL: ClientSetting("group.protocol", PLAIN, {"2.4": "classic"}),
        METADATA_AGE: ClientSetting("topic.metadata.refresh.interval.ms", MS, {"": 300_000}),
        GROUP_ID: ClientSetting("group.id", PLAIN, _UNSET),
    },
    KAFKA_PYTHON: {
        SESSION_TIMEOUT: ClientSetting("session_timeout_ms", MS, {"": 30_000, "1.4": 10_000, "3.0": 45_000}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat_interval_ms", MS, {"": 3_000}),
        POLL_INTERVAL: ClientSetting("max_poll_interval_ms", MS, {"1.4": 300_000}),
        REBALANCE_TIMEOUT: ClientSetting("max_poll_interval_ms", MS, {"1.4": 300_000}),
        POLL_RECORDS: ClientSetting("max_poll_records", PLAIN, {"1.3.2": "sys.maxsize", "1.3.3": 500}),
        PARTITION_BYTES: ClientSetting("max_partition_fetch_bytes", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("group_instance_id", PLAIN, {"2.3": "not set"}),
        ASSIGNORS: ClientSetting(
            "partition_assignment_strategy", PLAIN, {"": "roundrobin", "1.0.1": "range, roundrobin"}
        ),
        AUTO_COMMIT: ClientSetting("enable_auto_commit", PLAIN, {"": "True"}),
        COMMIT_INTERVAL: ClientSetting("auto_commit_interval_ms", MS, {"": 5_000}),
        OFFSET_RESET: ClientSetting("auto_offset_reset", PLAIN, {"": "latest"}),
        ISOLATION: ClientSetting("isolation_level", PLAIN, {"2.2": "read_uncommitted"}),
        RACK: ClientSetting("client_rack", PLAIN, {"3.0": "not set"}),
        METADATA_AGE: ClientSetting("metadata_max_age_ms", MS, {"": 300_000}),
        GROUP_ID: ClientSetting("group_id", PLAIN, _UNSET),
    },
    AIOKAFKA: {
        SESSION_TIMEOUT: ClientSetting("session_timeout_ms", MS, {"": 30_000, "0.5.1": 10_000}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat_interval_ms", MS, {"": 3_000}),
        POLL_INTERVAL: ClientSetting("max_poll_interval_ms", MS, {"0.5.1": 300_000}),
        REBALANCE_TIMEOUT: ClientSetting("rebalance_timeout_ms", MS, {"0.5.1": "session_timeout_ms"}),
        POLL_RECORDS: ClientSetting("max_poll_records", PLAIN, {"": "no limit"}),
        PARTITION_BYTES: ClientSetting("max_partition_fetch_bytes", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("group_instance_id", PLAIN, {"0.10": "not set"}),
        ASSIGNORS: ClientSetting("partition_assignment_strategy", PLAIN, {"": "roundrobin"}),
        AUTO_COMMIT: ClientSetting("enable_auto_commit", PLAIN, {"": "True"}),
        COMMIT_INTERVAL: ClientSetting("auto_commit_interval_ms", MS, {"": 5_000}),
        OFFSET_RESET: ClientSetting("auto_offset_reset", PLAIN, {"": "latest"}),
        ISOLATION: ClientSetting("isolation_level", PLAIN, {"0.5": "read_uncommitted"}),
        RACK: ClientSetting("client_rack", PLAIN, {"0.14": "not set"}),
        METADATA_AGE: ClientSetting("metadata_max_age_ms", MS, {"": 300_000}),
        GROUP_ID: ClientSetting("group_id", PLAIN, _UNSET),
    },
    KAFKAJS: {
        SESSION_TIMEOUT: ClientSetting("sessionTimeout", MS, {"": 30_000}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeatInterval", MS, {"": 3_000}),
        REBALANCE_TIMEOUT: ClientSetting("rebalanceTimeout", MS, {"1.8": 60_000}),
        PARTITION_BYTES: ClientSetting("maxBytesPerPartition", PLAIN, {"": 1_048_576}),
        ASSIGNORS: ClientSetting("partitionAssigners", PLAIN, {"": "roundRobin"}),
        AUTO_COMMIT: ClientSetting("autoCommit", PLAIN, {"1.5": "true"}),
        COMMIT_INTERVAL: ClientSetting("autoCommitInterval", MS, {"1.3": "not set"}),
        OFFSET_RESET: ClientSetting("fromBeginning", PLAIN, {"": "false"}),
        ISOLATION: ClientSetting("readUncommitted", PLAIN, {"1.5": "false"}),
        RACK: ClientSetting("rackId", PLAIN, {"1.13": "not set"}),
        METADATA_AGE: ClientSetting("metadataMaxAge", MS, {"1.3": 300_000}),
        GROUP_ID: ClientSetting("groupId", PLAIN, _UNSET),
    },
    FRANZ_GO: {
        SESSION_TIMEOUT: ClientSetting("kgo.SessionTimeout", DURATION, {"": 10, "0.7": 45}),
        HEARTBEAT_INTERVAL: ClientSetting("kgo.HeartbeatInterval", DURATION, {"": 3}),
        REBALANCE_TIMEOUT: ClientSetting("kgo.RebalanceTimeout", DURATION, {"": 60}),
        PARTITION_BYTES: ClientSetting("kgo.FetchMaxPartitionBytes", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("kgo.InstanceID", PLAIN, _UNSET),
        ASSIGNORS: ClientSetting("kgo.Balancers", PLAIN, {"": "cooperative-sticky"}),
        AUTO_COMMIT: ClientSetting("kgo.DisableAutoCommit", PLAIN, {"": "commits automatically"}),
        COMMIT_INTERVAL: ClientSetting("kgo.AutoCommitInterval", DURATION, {"": 5}),
        OFFSET_RESET: ClientSetting("kgo.ConsumeResetOffset", PLAIN, {"": "kgo.NewOffset().AtStart()"}),
        ISOLATION: ClientSetting("kgo.FetchIsolationLevel", PLAIN, {"": "kgo.ReadUncommitted()"}),
        RACK: ClientSetting("kgo.Rack", PLAIN, _UNSET),
        METADATA_AGE: ClientSetting("kgo.MetadataMaxAge", DURATION, {"": 300}),
        GROUP_ID: ClientSetting("kgo.ConsumerGroup", PLAIN, _UNSET),
    },
    SARAMA: {
        SESSION_TIMEOUT: ClientSetting("Consumer.Group.Session.Timeout", DURATION, {"": 10}),
        HEARTBEAT_INTERVAL: ClientSetting("Consumer.Group.Heartbeat.Interval", DURATION, {"": 3}),
        REBALANCE_TIMEOUT: ClientSetting("Consumer.Group.Rebalance.Timeout", DURATION, {"": 60}),
        PARTITION_BYTES: ClientSetting("Consumer.Fetch.Default", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("Consumer.Group.InstanceId", PLAIN, {"1.34": "not set"}),
        ASSIGNORS: ClientSetting("Consumer.Group.Rebalance.GroupStrategies", PLAIN, {"1.37": "range"}),
        AUTO_COMMIT: ClientSetting("Consumer.Offsets.AutoCommit.Enable", PLAIN, {"1.25": "true"}),
        COMMIT_INTERVAL: ClientSetting("Consumer.Offsets.AutoCommit.Interval", DURATION, {"1.25": 1}),
        OFFSET_RESET: ClientSetting("Consumer.Offsets.Initial", PLAIN, {"": "OffsetNewest"}),
        ISOLATION: ClientSetting("Consumer.IsolationLevel", PLAIN, {"1.22": "ReadUncommitted"}),
        RACK: ClientSetting("RackID", PLAIN, {"1.26.2": "not set"}),
        METADATA_AGE: ClientSetting("Metadata.RefreshFrequency", DURATION, {"": 600}),
        GROUP_ID: ClientSetting("groupID", PLAIN, _UNSET),
    },
    BROD: {
        SESSION_TIMEOUT: ClientSetting("session_timeout_seconds", S, {"": 10, "3.6": 30}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat_rate_seconds", S, {"": 2, "3.6": 5}),
        REBALANCE_TIMEOUT: ClientSetting("rebalance_timeout_seconds", S, {"3.16.1": 30}),
        PARTITION_BYTES: ClientSetting("max_bytes", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("group_instance_id", PLAIN, {"4.4.2": "the node's name and the process"}),
        ASSIGNORS: ClientSetting("partition_assignment_strategy", PLAIN, {"": "roundrobin_v2"}),
        COMMIT_INTERVAL: ClientSetting("offset_commit_interval_seconds", S, {"": 5}),
        OFFSET_RESET: ClientSetting("begin_offset", PLAIN, {"": "latest"}),
        ISOLATION: ClientSetting("isolation_level", PLAIN, {"3.17": "read_committed"}),
        GROUP_ID: ClientSetting("group_id", PLAIN, _UNSET),
    },
    RUBY_KAFKA: {
        SESSION_TIMEOUT: ClientSetting("session_timeout", S, {"": 30}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat_interval", S, {"": 10}),
        REBALANCE_TIMEOUT: ClientSetting("rebalance_timeout", S, {"1.0": 60}),
        PARTITION_BYTES: ClientSetting("max_bytes_per_partition", PLAIN, {"": 1_048_576}),
        ASSIGNORS: ClientSetting("assignment_strategy", PLAIN, {"1.3": "roundrobin"}),
        COMMIT_INTERVAL: ClientSetting("offset_commit_interval", S, {"": 10}),
        OFFSET_RESET: ClientSetting("start_from_beginning", PLAIN, {"": "true"}),
        METADATA_AGE: ClientSetting("refresh_topic_interval", S, {"1.0": 0}),
        GROUP_ID: ClientSetting("group_id", PLAIN, _UNSET),
    },
    RACECAR: {
        SESSION_TIMEOUT: ClientSetting("session_timeout", S, {"": 30}),
        HEARTBEAT_INTERVAL: ClientSetting("heartbeat_interval", S, {"": 10}),
        POLL_INTERVAL: ClientSetting("max_poll_interval", S, {"2.0": 300}),
        REBALANCE_TIMEOUT: ClientSetting("max_poll_interval", S, {"2.0": 300}),
        POLL_RECORDS: ClientSetting("fetch_messages", PLAIN, {"2.0": 1_000}),
        PARTITION_BYTES: ClientSetting("max_bytes_per_partition", PLAIN, {"": 1_048_576}),
        INSTANCE_ID: ClientSetting("group.instance.id", PLAIN, {"2.0": "not set"}),
        ASSIGNORS: ClientSetting("partition_assignment_strategy", PLAIN, {"2.10": "range,roundrobin"}),
        COMMIT_INTERVAL: ClientSetting("offset_commit_interval", S, {"": 10}),
        OFFSET_RESET: ClientSetting("start_from_beginning", PLAIN, {"": "true"}),
        GROUP_ID: ClientSetting("group_id", PLAIN, _UNSET),
    },
}
"""A setting that a client does not have is missing there."""
CLIENTS: Final = tuple(TABLE)

REVOKED: Final[Mapping[str, str]] = {
    **dict.fromkeys((JAVA, SPRING, CONNECTOR), "onPartitionsRevoked"),
    SMALLRYE: "onPartitionsRevoked of the KafkaConsumerRebalanceListener",
    LIBRDKAFKA: "the rebalance callback",
    **dict.fromkeys((KAFKA_PYTHON, AIOKAFKA, RACECAR), "on_partitions_revoked"),
    FRANZ_GO: "kgo.OnPartitionsRevoked",
    SARAMA: "Cleanup of the ConsumerGroupHandler",
    BROD: "assignments_revoked",
}
"""Where an application runs before partitions are taken away; clients without such a place are missing."""
POLL: Final[Mapping[str, str]] = {
    LIBRDKAFKA: "the call that polls",
    AIOKAFKA: "getmany() or the loop over the consumer",
    KAFKAJS: "eachMessage or eachBatch",
    FRANZ_GO: "PollFetches or PollRecords",
    SARAMA: "Consume",
    BROD: "the group subscriber",
    RUBY_KAFKA: "each_message or each_batch",
    RACECAR: "process or process_batch",
}
"""Other names of poll()."""
BATCHES: Final[Mapping[str, str]] = {
    CONNECT: "less work in the tasks' start and stop",
    LIBRDKAFKA: "fewer messages in one consume call",
    KAFKAJS: "a smaller maxBytesPerPartition, or heartbeat() between the messages of a batch",
    FRANZ_GO: "fewer records in each PollRecords",
    SARAMA: "less work for each message of ConsumeClaim",
    BROD: "a smaller max_bytes",
    RUBY_KAFKA: "a smaller max_bytes_per_partition",
}
"""Ways to do less between two polls, of clients without a setting for the records of one poll."""
COOPERATIVE_ASSIGNOR: Final[Mapping[str, ClientSetting]] = {
    **dict.fromkeys(
        (JAVA, SPRING, SMALLRYE, CONNECTOR),
        ClientSetting("org.apache.kafka.clients.consumer.CooperativeStickyAssignor", PLAIN, {"2.4": ""}),
    ),
    LIBRDKAFKA: ClientSetting("cooperative-sticky", PLAIN, {"1.6": ""}),
    RACECAR: ClientSetting("cooperative-sticky", PLAIN, {"2.10": ""}),
    KAFKA_PYTHON: ClientSetting("CooperativeStickyAssignor", PLAIN, {"3.0": ""}),
    FRANZ_GO: ClientSetting("kgo.CooperativeStickyBalancer()", PLAIN, {"": ""}),
}
"""The assignor of KIP-429, and since when a client has it."""
