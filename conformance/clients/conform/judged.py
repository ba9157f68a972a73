"""The judged clients: the version of each, its settings, and the command that starts it as a member."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from conformance.clients.programs import (
    BUILT,
    HERE,
    JAVA,
    class_path,
    go_life,
    go_version,
    javascript_life,
    maven_version,
    node_packages,
    npm_version,
    package_version,
    run,
)

CONFLUENT_JS: Final = Path(__file__).parent / "confluent"
MEMBERS: Final = HERE.parent / "incident"
ADDRESSES: Final = {"bootstrap.servers": "{BOOTSTRAP_SERVERS}", "group.id": "{GROUP_ID}"}
SETTINGS: Final = ADDRESSES | {
    "client.id": "judged",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "true",
    "auto.commit.interval.ms": "200",
    "metadata.max.age.ms": "1000",
    "max.poll.interval.ms": "60000",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "200",
}
"""Settings by Kafka's names; each program calls them as its library does."""

OF_CLASSIC: Final = ("session.timeout.ms", "heartbeat.interval.ms")
"""Settings that the broker has in the consumer protocol."""

TRANSACTIONS: Final = {"transactional.id": "{TRANSACTIONAL_ID}"}
OF_TRANSACTIONS: Final = ("calm", "producer-fenced", "transaction-refused")
"""Troubles that are played for programs that consume, transform and produce."""

STATIC: Final = {"group.instance.id": "one"}
CONSUMER: Final = {"group.protocol": "consumer"}
OF_STATIC: Final = ("fenced", "coordinator-moves", "removed", "brokers-restart", "close")
"""Troubles that are played for static members: the others go the same way as without a group.instance.id."""

Command = Callable[[Mapping[str, str]], list[str]]


@dataclass(frozen=True)
class JudgedClient:
    """A client with some settings. ``only`` names the troubles that are played, all where it is empty."""

    name: str
    version: str
    command: Command
    setting: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name, version and what is set."""
        setting = ["in transactions"] if self.setting == TRANSACTIONS else _pairs(self.setting)
        return " ".join([self.name, self.version, *setting])

    def started_by(self) -> list[str]:
        """The command with its arguments."""
        settings = SETTINGS | dict(self.setting)
        if settings.get("group.protocol") == "consumer":
            settings = {name: value for name, value in settings.items() if name not in OF_CLASSIC}
        return self.command(settings | {"processed": "true"})


def _pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _python(library: str, settings: Mapping[str, str]) -> list[str]:
    if _transforms(settings):
        return [sys.executable, "-m", "conformance.clients.conform.transformer", library, *_pairs(settings)]
    return [sys.executable, "-m", "conformance.incident.member", library, "{TOPIC}", *_pairs(settings)]


def _rdkafka(settings: Mapping[str, str]) -> list[str]:
    renamed = {"metadata.max.age.ms": "topic.metadata.refresh.interval.ms"}
    return _python("rdkafka", {renamed.get(name, name): value for name, value in settings.items()})


@cache
def _java_classes() -> str:
    classes = BUILT / "judged-java"
    sources = (MEMBERS / "Member.java", Path(__file__).parent / "Transformer.java")
    run("javac", "-cp", class_path(HERE / "java"), "-d", str(classes), *map(str, sources))
    return f"{classes}:{class_path(HERE / 'java')}"


def _java(settings: Mapping[str, str]) -> list[str]:
    program = ["Transformer"] if _transforms(settings) else ["Member", "{TOPIC}"]
    return [*JAVA, "-cp", _java_classes(), *program, *_pairs(settings)]


def _transforms(settings: Mapping[str, str]) -> bool:
    return "transactional.id" in settings


def _own(settings: Mapping[str, str]) -> list[str]:
    if not _transforms(settings):
        return _python("rejoin", settings)
    command = [
        sys.executable,
        "-m",
        "rejoin",
        "consume",
        "--topic",
        "{TOPIC}",
        "--bootstrap-server",
        "{BOOTSTRAP_SERVERS}",
    ]
    return [*command, "--group", "{GROUP_ID}", "--transform-to", "{OUTPUT_TOPIC}", "--exactly-once"]


def _go(name: str, settings: Mapping[str, str]) -> list[str]:
    if _transforms(settings):
        return [*go_life("franztransform"), *_pairs(settings)]
    return [*go_life(name), "{TOPIC}", *_pairs(settings)]


def _node(name: str, settings: Mapping[str, str]) -> list[str]:
    return [*javascript_life(name), "{TOPIC}", *_pairs(settings)]


def _confluent_js(settings: Mapping[str, str]) -> list[str]:
    renamed = {"metadata.max.age.ms": "topic.metadata.refresh.interval.ms"}
    pairs = _pairs({renamed.get(name, name): value for name, value in settings.items()})
    return ["node", str(node_packages(CONFLUENT_JS) / "confluent-member.mjs"), "{TOPIC}", *pairs]


_OF_JAVA: Final = ("Java", maven_version(HERE / "java"), _java)
_CONFLUENT: Final = ("confluent-kafka", version("confluent-kafka"), _rdkafka)
_KAFKA_PYTHON: Final = ("kafka-python", version("kafka-python"), partial(_python, "kafka-python"))
_AIOKAFKA: Final = ("aiokafka", version("aiokafka"), partial(_python, "aiokafka"))
_OWN: Final = ("rejoin.Consumer", version("rejoin-kafka"), _own)
_FRANZ: Final = ("franz-go", go_version("github.com/twmb/franz-go"), partial(_go, "franzmember"))
_SARAMA: Final = ("sarama", go_version("github.com/IBM/sarama"), partial(_go, "saramamember"))
_KAFKAJS: Final = ("KafkaJS", npm_version("kafkajs"), partial(_node, "kafkajs-member"))
_PLATFORMATIC: Final = (
    "@platformatic/kafka",
    npm_version("@platformatic/kafka"),
    partial(_node, "platformatic-member"),
)
_CONFLUENT_JS: Final = (
    "@confluentinc/kafka-javascript",
    package_version(CONFLUENT_JS, "@confluentinc/kafka-javascript"),
    _confluent_js,
)

JUDGED: Final = (
    JudgedClient(*_OF_JAVA),
    JudgedClient(*_CONFLUENT),
    JudgedClient(*_KAFKA_PYTHON),
    JudgedClient(*_AIOKAFKA),
    JudgedClient(*_OWN),
    JudgedClient(*_FRANZ),
    JudgedClient(*_SARAMA),
    JudgedClient(*_KAFKAJS),
    JudgedClient(*_PLATFORMATIC),
    JudgedClient(*_CONFLUENT_JS),
    JudgedClient(*_OF_JAVA, CONSUMER),
    JudgedClient(*_CONFLUENT, CONSUMER),
    JudgedClient(*_OWN, CONSUMER),
    JudgedClient(*_PLATFORMATIC, CONSUMER),
    JudgedClient(*_OF_JAVA, STATIC, OF_STATIC),
    JudgedClient(*_CONFLUENT, STATIC, OF_STATIC),
    JudgedClient(*_KAFKA_PYTHON, STATIC, OF_STATIC),
    JudgedClient(*_AIOKAFKA, STATIC, OF_STATIC),
    JudgedClient(*_OWN, STATIC, OF_STATIC),
    JudgedClient(*_FRANZ, STATIC, OF_STATIC),
    JudgedClient(*_SARAMA, STATIC, OF_STATIC),
    JudgedClient(*_PLATFORMATIC, STATIC, OF_STATIC),
    JudgedClient(*_OF_JAVA, TRANSACTIONS, OF_TRANSACTIONS),
    JudgedClient(*_CONFLUENT, TRANSACTIONS, OF_TRANSACTIONS),
    JudgedClient(*_KAFKA_PYTHON, TRANSACTIONS, OF_TRANSACTIONS),
    JudgedClient(*_AIOKAFKA, TRANSACTIONS, OF_TRANSACTIONS),
    JudgedClient(*_OWN, TRANSACTIONS, OF_TRANSACTIONS),
    JudgedClient(*_FRANZ, TRANSACTIONS, OF_TRANSACTIONS),
)
"""Every judged client; by name, version and settings."""
