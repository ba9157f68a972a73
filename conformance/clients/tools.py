"""Kafka's own command-line tools, each as a step: what it is given, and what must be in its output."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.clients.programs import HERE, JAVA, class_path, maven_version

NAME: Final = "kafka-tools"
VERSION: Final = maven_version(HERE / "tools")
TOOLS: Final = "org.apache.kafka.tools"
FEATURES: Final = f"{TOOLS}.FeatureCommand"
GROUPS: Final = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
TOPICS: Final = f"{TOOLS}.TopicCommand"
CONSUMER: Final = f"{TOOLS}.consumer.ConsoleConsumer"
CONFIGS: Final = "kafka.admin.ConfigCommand"
SHARE_GROUPS: Final = f"{TOOLS}.consumer.group.ShareGroupCommand"
SHARE_CONSUMER: Final = f"{TOOLS}.consumer.ConsoleShareConsumer"
SECONDS: Final = 60.0

TOPIC: Final = "tools-topic"
GROUP: Final = "tools-group"
SHARE_GROUP: Final = "tools-share"


@dataclass(frozen=True, slots=True)
class Step:
    """A tool, its arguments, what it reads, and patterns that its output must match."""

    name: str
    tool: str
    arguments: tuple[str, ...]
    expected: tuple[str, ...]
    reads: str = ""
    address: str = "--bootstrap-server"


RECORDS: Final = "".join(f"key-{number}:value-{number}\n" for number in range(20))
DELETION: Final = {"partitions": [{"topic": TOPIC, "partition": 0, "offset": 3}], "version": 1}
OF_TOPIC: Final = ("--topic", TOPIC)
OF_GROUP: Final = ("--group", GROUP)
ENTITY: Final = ("--entity-type", "topics", "--entity-name", TOPIC)
LEVEL_1: Final = ("--feature", "transaction.version=1")
LEVEL_2: Final = ("--feature", "transaction.version=2")
RESET: Final = ("--reset-offsets", *OF_GROUP, *OF_TOPIC, "--to-earliest", "--execute")
OFFSETS_FORMAT: Final = ("--formatter", f"{TOOLS}.consumer.OffsetsMessageFormatter")

OF_SHARE_GROUP: Final = ("--group", SHARE_GROUP)
SHARE_ENTITY: Final = ("--entity-type", "groups", "--entity-name", SHARE_GROUP)
SHARE_RESET: Final = ("--reset-offsets", *OF_SHARE_GROUP, *OF_TOPIC, "--to-earliest", "--execute")
SHARE_FORMAT: Final = ("--formatter", f"{TOOLS}.consumer.group.share.ShareGroupStateMessageFormatter")

SHARE_STEPS: Final = (
    Step(
        "kafka-configs --alter of a share group",
        CONFIGS,
        ("--alter", *SHARE_ENTITY, "--add-config", "share.auto.offset.reset=earliest"),
        ("Completed",),
    ),
    Step(
        "kafka-console-share-consumer",
        SHARE_CONSUMER,
        (*OF_TOPIC, *OF_SHARE_GROUP, "--max-messages", "20", "--timeout-ms", "20000"),
        tuple(f"value-{number}\n" for number in range(20)),
    ),
    Step("kafka-groups --list", f"{TOOLS}.GroupsCommand", ("--list",), (rf"{SHARE_GROUP} +Share",)),
    Step("kafka-share-groups --list", SHARE_GROUPS, ("--list",), (SHARE_GROUP,)),
    Step(
        "kafka-share-groups --describe",
        SHARE_GROUPS,
        ("--describe", *OF_SHARE_GROUP),
        (rf"{SHARE_GROUP} +{TOPIC} +0 +\d+ +0",),
    ),
    Step("kafka-share-groups --describe --state", SHARE_GROUPS, ("--describe", "--state", *OF_SHARE_GROUP), ("Empty",)),
    Step(
        "kafka-share-groups --describe --members",
        SHARE_GROUPS,
        ("--describe", "--members", *OF_SHARE_GROUP),
        (rf"{SHARE_GROUP}' has no active members",),
    ),
    Step("kafka-share-groups --reset-offsets", SHARE_GROUPS, SHARE_RESET, (rf"{SHARE_GROUP} +{TOPIC} +2 +0",)),
    Step(
        "kafka-console-consumer of __share_group_state",
        CONSUMER,
        ("--topic", "__share_group_state", "--from-beginning", *SHARE_FORMAT, "--timeout-ms", "15000"),
        (rf'"groupId":"{SHARE_GROUP}"', '"startOffset":'),
    ),
    Step(
        "kafka-share-groups --delete-offsets",
        SHARE_GROUPS,
        ("--delete-offsets", *OF_SHARE_GROUP, *OF_TOPIC),
        (rf"{TOPIC} +Successful",),
    ),
    Step("kafka-share-groups --delete", SHARE_GROUPS, ("--delete", *OF_SHARE_GROUP), ("successful",)),
)
"""The steps about share groups, which Kafka 2.8 does not have."""

STEPS: Final = (
    Step("kafka-topics --create", TOPICS, ("--create", *OF_TOPIC, "--partitions", "3"), (f"Created topic {TOPIC}",)),
    Step("kafka-topics --list", TOPICS, ("--list",), (TOPIC,)),
    Step("kafka-topics --describe", TOPICS, ("--describe", *OF_TOPIC), ("PartitionCount: 3", r"Leader: \d+")),
    Step(
        "kafka-console-producer",
        f"{TOOLS}.ConsoleProducer",
        (*OF_TOPIC, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        (),
        reads=RECORDS,
    ),
    Step(
        "kafka-console-consumer",
        CONSUMER,
        (*OF_TOPIC, *OF_GROUP, "--from-beginning", "--max-messages", "20", "--timeout-ms", "20000"),
        tuple(f"value-{number}\n" for number in range(20)),
    ),
    Step("kafka-consumer-groups --list", GROUPS, ("--list",), (GROUP,)),
    Step("kafka-consumer-groups --describe", GROUPS, ("--describe", *OF_GROUP), (rf"{TOPIC} +0 +(\d+) +\1 +0",)),
    Step("kafka-consumer-groups --describe --state", GROUPS, ("--describe", "--state", *OF_GROUP), ("Empty",)),
    Step("kafka-consumer-groups --reset-offsets", GROUPS, RESET, (rf"{TOPIC} +2 +0",)),
    Step("kafka-get-offsets", f"{TOOLS}.GetOffsetShell", OF_TOPIC, (rf"{TOPIC}:0:\d+", rf"{TOPIC}:2:\d+")),
    *SHARE_STEPS,
    Step("kafka-configs --describe", CONFIGS, ("--describe", *ENTITY, "--all"), ("retention.ms=604800000",)),
    Step(
        "kafka-configs --alter", CONFIGS, ("--alter", *ENTITY, "--add-config", "retention.ms=1000000"), ("Completed",)
    ),
    Step("kafka-configs --describe, changed", CONFIGS, ("--describe", *ENTITY), ("retention.ms=1000000",)),
    Step(
        "kafka-delete-records",
        f"{TOOLS}.DeleteRecordsCommand",
        ("--offset-json-file", "{deletion}"),
        (rf"{TOPIC}-0\s+low_watermark: 3",),
    ),
    Step(
        "kafka-verifiable-producer",
        f"{TOOLS}.VerifiableProducer",
        (*OF_TOPIC, "--max-messages", "50", "--acks", "-1"),
        ('"sent":50,"acked":50',),
    ),
    Step(
        "kafka-verifiable-consumer",
        f"{TOOLS}.VerifiableConsumer",
        (*OF_TOPIC, "--group-id", "verifiable", "--max-messages", "50", "--reset-policy", "earliest"),
        ('"name":"offsets_committed"', '"name":"shutdown_complete"'),
    ),
    Step(
        "kafka-console-consumer of __consumer_offsets",
        CONSUMER,
        ("--topic", "__consumer_offsets", "--from-beginning", *OFFSETS_FORMAT, "--timeout-ms", "15000"),
        (r'"group":"(tools-group|verifiable)"', rf'"topic":"{TOPIC}"', '"offset":'),
    ),
    Step("kafka-log-dirs", f"{TOOLS}.LogDirsCommand", ("--describe", "--topic-list", TOPIC), (rf"{TOPIC}-0",)),
    Step("kafka-broker-api-versions", f"{TOOLS}.BrokerApiVersionsCommand", (), (r"Produce\(0\)", r"Fetch\(1\)")),
    Step("kafka-features downgrade", FEATURES, ("downgrade", *LEVEL_1), ("downgraded to 1",)),
    Step("kafka-features describe", FEATURES, ("describe",), (r"transaction.version\s.*FinalizedVersionLevel: 1",)),
    Step("kafka-features upgrade", FEATURES, ("upgrade", *LEVEL_2), ("upgraded to 2",)),
    Step("kafka-consumer-groups --delete", GROUPS, ("--delete", *OF_GROUP), ("was successful",)),
    Step("kafka-topics --alter", TOPICS, ("--alter", *OF_TOPIC, "--partitions", "5"), ()),
    Step("kafka-topics --delete", TOPICS, ("--delete", *OF_TOPIC), ()),
)


def run_steps(bootstrap_servers: str) -> Iterator[tuple[str, str]]:
    """Run each step; yields its name and its problem, which is empty where it passed."""
    jars = class_path(HERE / "tools")
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        deletion = Path(folder) / "deletion.json"
        deletion.write_text(json.dumps(DELETION))
        for step in STEPS:
            arguments = [each.replace("{deletion}", str(deletion)) for each in step.arguments]
            command = [*JAVA, "-cp", jars, step.tool, step.address, bootstrap_servers, *arguments]
            yield step.name, _problem(step, command)


def _problem(step: Step, command: list[str]) -> str:
    try:
        done = subprocess.run(command, input=step.reads, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS:.0f} s"
    said = done.stdout + done.stderr
    missing = [pattern for pattern in step.expected if re.search(pattern, said) is None]
    if done.returncode == 0 and not missing:
        return ""
    return " ".join(f"exit {done.returncode}, without {missing}: {said}".split())[:300]
