"""Names of the clients whose lines are known."""

from __future__ import annotations

from typing import Final

JAVA: Final = "java"
"""Java's client, and what is released with it: Kafka Streams and Connect."""
RDKAFKA: Final = "librdkafka"
KAFKA_PYTHON: Final = "kafka-python"
AIOKAFKA: Final = "aiokafka"
KAFKAJS: Final = "kafkajs"
FRANZ_GO: Final = "franz-go"
SARAMA: Final = "sarama"
BROD: Final = "brod"
SMALLRYE: Final = "smallrye"
STREAMS: Final = "streams"
SPRING: Final = "spring"
RUBY: Final = "ruby-kafka"
