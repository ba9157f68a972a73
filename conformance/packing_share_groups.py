"""Packs the recordings of share groups: their steps become exchanges, with answers in the brief form.

Records of internal topics are left out, since their partitions belong to the broker. Topics exist when a script begins.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from conformance.player.recorder import GOLDEN
from rejoin.conform.comparison.brief_answers import LETTERS, VARIES, brief
from rejoin.conform.player.messages import Json, without_newer_fields
from rejoin.conform.player.prefix import INTERNAL
from rejoin.conform.records.described_records import described_batches
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
"""Settings of the recorded broker."""
LONGEST_MS: Final = 40_000
"""One script waits for the end of a lock of 30 s, and the other scripts are played beside it."""
UNKNOWN_ID: Final = "nobodyhasthisnobodyhaw"
"""An id that no topic has."""
BOUNDED: Final = 1 << 20
_TOPIC_ID: Final = re.compile(r"@[?\w.-]+")


def paths_of_share_groups() -> list[Path]:
    """The recordings on a broker."""
    return [GOLDEN / "share-groups" / name for name in ("broker-scripts.jsonl.gz", "broker-random.jsonl.gz")]


def scripts_of_share_groups() -> Iterator[tuple[str, Json, list[Json]]]:
    """The scripts, each with its set, its header and its lines."""
    for path in paths_of_share_groups():
        for line in gzip.decompress(path.read_bytes()).splitlines():
            script = json.loads(line)
            packed = _Packed(script)
            header = {
                "script": f"{'random' if script['category'] == 'random' else 'written'}/{script['id']}",
                "settings": SETTINGS,
                "brokers": 1,
                "topics": packed.topics,
                "brief": True,
            }
            yield "share-groups", header, packed.lines


@dataclass
class _Packed:
    """The lines of one script; ``at`` is the time since its begin, in ms."""

    script: Json
    topics: dict[str, Json] = field(default_factory=dict)
    lines: list[Json] = field(default_factory=list)
    at: int = 0

    def __post_init__(self) -> None:
        waiting: Json = {}
        steps = self.script["steps"]
        varies = set(self.script.get("varies", ()))
        for number, step in enumerate(steps):
            match step:
                case {"api": "CreateTopics"}:
                    self._topics_of(step["body"]["topics"])
                case {"sleep": _} if number and steps[number - 1].get("api") == "CreateTopics":
                    pass  # New topics are waited for.
                case {"sleep": ms}:
                    self.lines.append({"do": "wait", "ms": ms, "began": self.at, "ended": self.at + ms})
                    self.at += ms
                case {"produce": topic}:
                    self._produce(topic, step)
                case {"log": topic} if not topic.startswith(INTERNAL):
                    self._fetch_letters(topic, step)
                case {"send": api}:
                    waiting = self._request(step, api)
                case {"receive": _}:
                    self.at += step["ms"]
                    self._answer(waiting, step["reply"])
                case {"api": api}:
                    line = self._request(step, api)
                    if number in varies:
                        line[VARIES] = True
                    self.at += step["ms"]
                    self._answer(line, step["reply"])

    def _topics_of(self, created: list[Json]) -> None:
        for each in created:
            configs = {config["name"]: config["value"] for config in each["configs"]}
            self.topics[each["name"]] = {"partitions": each["numPartitions"], "configs": configs}

    def _line(self, client: str, api: str, version: int, request: Json) -> Json:
        line = {"n": len(self.lines) + 1, "client": client, "broker": 1, "api": api, "version": version}
        line |= {"sent": self.at, "request": request}
        self.lines.append(line)
        return line

    def _request(self, step: Json, api: str) -> Json:
        version = step["version"]
        body = without_newer_fields(api, version, _named(step["body"]))
        return self._line(f"client-{step['connection']}", api, version, body)

    def _answer(self, line: Json, reply: Json) -> None:
        if line["api"] == "ListGroups":
            # The recorded broker had the groups of other scripts as well.
            reply = reply | {"groups": [each for each in reply["groups"] if each["groupId"] in self._groups()]}
        answer = brief({"api": line["api"], "answer": {}}, _named_answer(reply))
        line |= {"answered": self.at, "answer": answer}

    def _groups(self) -> set[str]:
        return {step["body"].get("groupId") for step in self.script["steps"] if "body" in step}

    def _produce(self, topic: str, step: Json) -> None:
        base = step["baseOffset"]
        for count in step["records"] if isinstance(step["records"], list) else [step["records"]]:
            data = {"index": step["partition"], "records": _records(count)}
            request = {"transactionalId": None, "acks": -1, "timeoutMs": 5_000}
            topics = [{"name": topic, "partitionData": [data]}]
            line = self._line("producer", "Produce", 9, {**request, "topicData": topics})
            answer = {"index": step["partition"], "errorCode": step["errorCode"], "baseOffset": base}
            line |= {"answered": self.at, "answer": {"responses": [{"name": topic, "partitionResponses": [answer]}]}}
            base += count

    def _fetch_letters(self, topic: str, step: Json) -> None:
        partition = {"partition": step["partition"], "fetchOffset": 0, "partitionMaxBytes": BOUNDED}
        request = {"replicaId": -1, "maxWaitMs": 0, "minBytes": 0, "maxBytes": BOUNDED, "sessionEpoch": -1}
        line = self._line(
            "client-admin", "Fetch", 12, {**request, "topics": [{"topic": topic, "partitions": [partition]}]}
        )
        line |= {"answered": self.at, "answer": {LETTERS: step["records"]}}


def _records(count: int) -> Json:
    builder = BatchBuilder(0)
    for offset in range(count):
        builder.append(encode_record(0, offset, f"k{offset}".encode(), f"v{offset}".encode()), 0)
    described = described_batches(bytes(builder.seal(CompressionType.NONE)))
    for batch in described["batches"]:
        batch |= {"baseTimestamp": "T+0", "maxTimestamp": "T+0"}
    return described


def _named(value: Any) -> Any:
    """A request with the names of topic ids as other recordings have them. Empty lists are empty objects here."""
    return [] if value == {} else _with_ids(value, _named)


def _named_answer(value: Any) -> Any:
    return _with_ids(value, _named_answer)


def _with_ids(value: Any, inner: Any) -> Any:
    if isinstance(value, dict):
        return {name: inner(each) for name, each in value.items()}
    if isinstance(value, list):
        return [inner(each) for each in value]
    if isinstance(value, str) and "@" in value:
        return _TOPIC_ID.sub(lambda found: UNKNOWN_ID if found[0] == "@?" else f"id:{found[0][1:]}", value)
    return value
