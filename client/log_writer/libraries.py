"""The libraries whose logs can be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.client.log_writer.java import JavaLog
from rejoin.client.log_writer.java_share import JavaShareLog
from rejoin.client.log_writer.java_streams import JavaStreamsLog
from rejoin.client.log_writer.javascript_and_go import FranzGoLog, KafkaJSLog, SaramaLog
from rejoin.client.log_writer.python import AiokafkaLog, KafkaPythonLog
from rejoin.client.log_writer.rdkafka import DefaultRdkafkaLog, RdkafkaLog
from rejoin.client.log_writer.rdkafka_share import DefaultRdkafkaShareLog, RdkafkaShareLog
from rejoin.client.log_writer.writer import ClientLog
from rejoin.journal.kafka_logs.template import Version

LIBRARIES: Final[Mapping[str, tuple[type[ClientLog], tuple[Version, ...]]]] = {
    "java": (JavaLog, ((2, 3), (2, 5), (2, 7), (3, 0), (4, 4))),
    "rdkafka": (DefaultRdkafkaLog, ((2, 16),)),
    "rdkafka-debug": (RdkafkaLog, ((2, 16),)),
    "kafka-python": (KafkaPythonLog, ((2, 0), (2, 2), (3, 0))),
    "aiokafka": (AiokafkaLog, ((0, 14),)),
    "kafkajs": (KafkaJSLog, ((2, 2),)),
    "franz-go": (FranzGoLog, ((1, 22),)),
    "sarama": (SaramaLog, ((1, 61),)),
}
"""Each with the versions in which its lines differ."""
SHARE: Final[Mapping[str, type[ClientLog]]] = {
    "java": JavaShareLog,
    "rdkafka": DefaultRdkafkaShareLog,
    "rdkafka-debug": RdkafkaShareLog,
}
"""Libraries whose share consumers' lines are known."""
STREAMS: Final[Mapping[str, type[ClientLog]]] = {"java": JavaStreamsLog}
"""Libraries whose stream threads' lines are known, of the streams protocol."""
STATIC: Final = frozenset({"java", "rdkafka-debug", "franz-go"})
"""Libraries whose lines show static members."""
COOPERATIVE: Final = frozenset({"java", "rdkafka", "rdkafka-debug", "franz-go"})
"""Libraries that have a cooperative assignor; Java since 2.4."""
