"""Requests of Java's share consumer, as recorded beside a real broker: our core sends the same for the same replies."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.protocol.message import Response
from rejoin.protocol.registry import BY_NAME
from tests.client.core.fetch.test_batches import batch, plain
from tests.client.share.bench import ShareBench
from tests.paths import ROOT

LIVES = [
    life
    for line in gzip.decompress((ROOT / "tests/golden/share-groups/client-lives.jsonl.gz").read_bytes()).splitlines()
    if (life := json.loads(line))["client"] == "java"
]
ACCEPT, RELEASE, REJECT = 1, 2, 3
TOPIC_ID = "8moMe0n9RHK9JKoJbtAnaw"


def reply_of(recorded: dict[str, Any], topic: str) -> Response:
    """The recorded reply, with real batches where the recording has only their offsets."""
    reply = json.loads(json.dumps(recorded["reply"]).replace(f"@{topic}", TOPIC_ID))
    for each in reply.get("responses", ()):
        for partition in each["partitions"]:
            if "records" in partition:
                made = [batch(first, plain(last - first + 1, first)) for first, last, _ in partition["records"]]
                partition["records"] = base64.b64encode(b"".join(made)).decode()
    return BY_NAME[recorded["api"]].response.model_validate_json(json.dumps(reply))


class Program:
    """The recorded program: it ends after twelve records; the explicit one commits after each poll."""

    def __init__(self, life: dict[str, Any], topic: str, group_id: str) -> None:
        self.is_explicit = life["what"] != "implicit"
        self._order = life["said"]
        self._topic = topic
        self.said: list[str] = []
        mode = "explicit" if self.is_explicit else "implicit"
        self.bench = ShareBench(
            {topic: 2},
            ids={topic: TOPIC_ID},
            group_id=group_id,
            max_poll_records=4,
            share_acknowledgement_mode=mode,
        )
        self.bench.subscribe()
        self.bench.poll(10_000)

    def go_on(self) -> None:
        """Calls of the program after a poll, and after a commit."""
        while self.bench.polls:
            self._handle(self.bench.polls.pop(0))
        while self.bench.commits:
            assert set(self.bench.commits.pop(0).values()) == {None}
            self._poll_or_close()

    def _handle(self, records: list[ConsumerRecord] | KafkaError) -> None:
        assert not isinstance(records, KafkaError)
        by_text = {f"{each.partition}:{each.offset} delivery {each.delivery_count}": each for each in records}
        texts = sorted(by_text, key=self._order.index)
        self.said += texts
        if not self.is_explicit:
            self._poll_or_close()
            return
        for index, text in enumerate(texts):
            kind = (ACCEPT, RELEASE, REJECT, ACCEPT)[index % 4]
            assert self.bench.acknowledge(self._topic, by_text[text].partition, by_text[text].offset, kind) is None
        self.bench.commit()

    def _poll_or_close(self) -> None:
        if len(self.said) >= 12:
            self.bench.close()
        else:
            self.bench.poll(10_000)


@pytest.mark.parametrize("life", LIVES, ids=[life["id"] for life in LIVES])
def test_the_requests_are_those_of_java(life: dict[str, Any]) -> None:
    recorded = [each for each in life["requests"] if each["api"] != "FindCoordinator"]
    first = recorded[0]["body"]
    topic = first["subscribedTopicNames"][0]
    program = Program(life, topic, first["groupId"])
    bench = program.bench
    for each in recorded:
        if not bench.waiting:
            bench.advance(400)
        at = next(n for n, sent in enumerate(bench.waiting) if type(sent.request).__name__ == f"{each['api']}Request")
        bench.waiting.insert(0, bench.waiting.pop(at))
        sent = bench.waiting[0]
        body = json.loads(
            json.dumps(json.loads(sent.request.model_dump_json(by_alias=True))).replace(TOPIC_ID, f"@{topic}")
        )
        assert {field: body.get(field) for field in each["body"]} == each["body"]
        assert sent.version == each["version"]
        bench.respond(reply_of(each, topic))
        program.go_on()
    assert bench.waiting == []
    assert bench.core.closed
    said = [text for text in life["said"] if "delivery" in text]
    assert program.said == said
    assert all(done.error is None for done in bench.callbacks)
