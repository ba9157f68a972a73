"""Outputs of Kafka's ``kafka-reassign-partitions.sh`` and ``kafka-leader-election.sh``, and their comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from rejoin.protocol.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from tests.paths import GOLDEN as FOLDER

GOLDEN: Final = FOLDER / "cluster" / "commands.jsonl"
"""Runs of the tools with what they printed, in their order. Written by conformance.cluster.commands."""

TOPICS: Final = {"orders": ((1, 2), (2, 3), (3, 1)), "payments": ((1,),), "clicks": ((1,), (2,))}
"""Topics at the beginning, with the replicas of each partition."""

HELD: Final = "payments"
"""The topic whose reassignment goes on: it has records, and the command sets a throttle of a byte per second."""


def _moves(*moves: tuple[str, int, list[int]], **more: Any) -> dict[str, Any]:
    entries = [{"topic": topic, "partition": index, "replicas": replicas, **more} for topic, index, replicas in moves]
    return {"version": 1, "partitions": entries}


FILES: Final[dict[str, Any]] = {
    "move": _moves(("orders", 0, [2, 3]), ("orders", 2, [3, 1])),
    "back": _moves(("orders", 0, [1, 2])),
    "hold": _moves((HELD, 0, [3])),
    "swap": _moves(("clicks", 0, [1]), (HELD, 0, [3])),
    "nowhere": _moves(("nowhere", 0, [1])),
    "beyond": _moves(("orders", 7, [1])),
    "unknown-broker": _moves(("orders", 0, [9])),
    "twice": _moves(("orders", 0, [1, 1])),
    "repeated": _moves(("orders", 0, [1]), ("orders", 0, [2])),
    "empty": _moves(),
    "no-replicas": _moves(("orders", 0, [])),
    "dirs": _moves(("orders", 0, [1, 2]), log_dirs=["any"]),
    "version": {"version": 2, "partitions": []},
    "no-version": {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]},
    "payments-topic": {"version": 1, "topics": [{"topic": "payments"}]},
    "orders-topic": {"version": 1, "topics": [{"topic": "orders"}]},
    "no-topic": {"version": 1, "topics": [{"topic": "nowhere"}]},
    "topic-twice": {"version": 1, "topics": [{"topic": "orders"}, {"topic": "orders"}]},
    "election": {"partitions": [{"topic": "orders", "partition": 0}, {"topic": "clicks", "partition": 1}]},
    "election-twice": {"partitions": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 0}]},
    "election-empty": {"topics": []},
}
"""Contents of the files that commands name as ``@NAME``."""

_EXCEPTION: Final = re.compile(r"((?:java|org)\.[\w.]+Exception): .*")
_FRAME: Final = re.compile(r"\s+at |Caused by: |\s+\.\.\. \d+ more|(java|org\.apache)[\w.]+(Exception|Error)\b")
_SUPPRESSED: Final = re.compile(r"\s+Suppressed: ")
_DIRECTORY: Final = re.compile(r'"/[^"]*"')
_LIST: Final = re.compile(r"(for partitions |on brokers |on topics )(.*)")


def topics_request() -> CreateTopicsRequest:
    """A request that creates the topics."""
    topics = tuple(
        CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                for index, replicas in enumerate(partitions)
            ),
            configs=(),
        )
        for name, partitions in TOPICS.items()
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=30_000)


def write_files(folder: Path) -> None:
    """Write the files of the commands into a folder."""
    for name, content in FILES.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "text.json").write_text("orders 0 1\n")


def located(word: str, folder: Path) -> str:
    """A word of a command, with the path of the file that it names."""
    return str(folder / f"{word[1:]}.json") if word.startswith("@") else word


def arranged(output: str) -> str:
    """An output to compare: without stack traces, empty lines and the words of exceptions, with sorted lists.

    Directories of replicas, which only Kafka's tool shows, are replaced.
    """
    lines = [
        _DIRECTORY.sub('"any"', _EXCEPTION.sub(r"\1: ...", line)).rstrip()
        for line in output.splitlines()
        if not _FRAME.match(line) and not _SUPPRESSED.match(line)
    ]
    return "\n".join(_LIST.sub(_sorted_list, line) for line in lines if line)


def _sorted_list(found: re.Match[str]) -> str:
    return found[1] + ",".join(sorted(found[2].replace(" ", "").split(",")))
