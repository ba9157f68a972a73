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
        return " ".join([self.name, self.version, *_pairs(self.setting)])

    def started_by(self) -> list[str]:
        """The command with its arguments."""
        settings = SETTINGS | dict(self.setting)
        if settings.get("group.protocol") == "consumer":
            settings = {name: value for name, value in settings.items() if name not in OF_CLASSIC}
        return self.command(settings | {"processed": "true"})


def _pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _python(library: str, settings: Mapping[str, str]) -> list[str]:
    return [sys.executable, "-m", "conformance.incident.member", library, "{TOPIC}", *_pairs(settings)]


def _rdkafka(settings: Mapping[str, str]) -> list[str]:
    renamed = {"metadata.max.age.ms": "topic.metadata.refresh.interval.ms"}
    return _python("rdkafka", {renamed.get(name, name): value for name, value in settings.items()})


@cache
def _java_classes() -> str:
    classes = BUILT / "judged-java"
    run("javac", "-cp", class_path(HERE / "java"), "-d", str(classes), str(MEMBERS / "Member.java"))
    return f"{classes}:{class_path(HERE / 'java')}"


def _java(settings: Mapping[str, str]) -> list[str]:
    return [*JAVA, "-cp", _java_classes(), "Member", "{TOPIC}", *_pairs(settings)]


def _go(name: str, settings: Mapping[str, str]) -> list[str]:
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
_OWN: Final = ("rejoin.Consumer", version("rejoin-kafka"), partial(_python, "rejoin"))
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
)
"""Every judged client; by name, version and settings."""
