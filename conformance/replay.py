"""Replays a recording against the emulator's core, in virtual time: the same requests at the same instants.

The ids that a broker drew have names in a recording; the core is handed the same ones, so that answers can be compared
as they are. Appends succeed at once, unless the broker's settings make them fail.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from conformance.compare import CLOSED, REFUSED, Answer, Exchange, exchanges
from conformance.names import FIRST_PORT, topic_id_bytes
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect, ReadLog, Reply
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elapsed,
    Elected,
    Input,
    LogRead,
    Received,
    Resigned,
    Stored,
)
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import WrongVersion
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, Record, offsets_partition
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.types import TopicPartition

START: Final = 1_700_000_000_000
HOST: Final = "127.0.0.1"
MIN_ISR: Final = "min.insync.replicas"
MESSAGE_LIMIT: Final = "message.max.bytes"


@dataclass(frozen=True)
class Recording:
    """A golden file."""

    script: str
    kafka: str
    brokers: int
    settings: dict[str, str]
    deny: list[str]
    topics: dict[str, int]
    lines: list[dict[str, Any]]

    @property
    def exchanges(self) -> list[Exchange]:
        return exchanges(self.lines)


def read(path: Path) -> Recording:
    """Read a golden file."""
    header, *lines = (json.loads(line) for line in path.read_text().splitlines())
    return Recording(**header, lines=lines)


def settings_of(recording: Recording) -> Settings:
    """The broker's settings, as far as they are the emulator's, too."""
    known = {field.alias for field in Settings.model_fields.values()}
    shared = {name: value for name, value in recording.settings.items() if name in known}
    deny = tuple(f"User:*:ALL:{one}" for one in recording.deny)
    return Settings.model_validate({"emulator.sync.while.loading": "load-in-progress", "emulator.deny": deny, **shared})


class Ids:
    """Draws the ids that the recording has."""

    def __init__(self) -> None:
        self._planned: deque[str] = deque()
        self._unseen = itertools.count(1)

    def __call__(self) -> str:
        return self._planned.popleft() if self._planned else f"unseen{next(self._unseen)}"

    def plan_topics(self, names: list[str]) -> None:
        self._planned = deque(topic_id_bytes(name).hex() for name in names)

    def plan(self, asked: Exchange) -> None:
        """What this request will draw, going by what Kafka answered."""
        self._planned.clear()
        answer = asked.answer.body if asked.answer is not None and asked.answer.body != CLOSED else {}
        if asked.api == "JoinGroup" and not asked.request["memberId"] and answer.get("memberId"):
            self._planned.append(answer["memberId"].rpartition("-")[2])
        elif asked.api == "CreateTopics":
            made = [topic["name"] for topic in answer.get("topics", ()) if not topic["errorCode"]]
            self.plan_topics([topic["name"] for topic in asked.request["topics"] if topic["name"] in made])
        elif asked.api == "Metadata":
            self.plan_topics([topic["name"] for topic in asked.request["topics"] or () if topic["name"]])


class Emulator:
    """As many nodes as the recording had brokers, one log, and a clock that stands still between the lines."""

    def __init__(self, recording: Recording, node: Callable[[Settings, Callable[[], str]], Node] = Node) -> None:
        self._recording = recording
        self._make = node
        self.ids = Ids()
        self.now = START
        self.answers: dict[int, Answer] = {}
        self._settings = settings_of(recording)
        self._logs: dict[TopicPartition, list[Record]] = {}
        self._partitions = [offsets_partition(index) for index in range(self._settings.offsets_topic_num_partitions)]
        self._epoch = 0
        self._holds_load = False
        self._unread: deque[ReadLog] = deque()
        self._leader = 1
        self._open: dict[int, set[int]] = {}
        self._limit = int(recording.settings.get(MESSAGE_LIMIT, "1000000"))
        self.nodes: dict[int, Node] = {}
        for number in range(1, recording.brokers + 1):
            self._begin(number)

    def play(self) -> dict[int, Answer]:
        """Every line of the recording; the answers by number of request."""
        asked = {one.number: one for one in self._recording.exchanges}
        for line in self._recording.lines:
            self._advance(START + line["at"])
            if "request" in line:
                self._ask(asked[line["n"]])
            elif "coordinator" in line:
                self._holds_load = line.get("loading", False)
                self._elect(line["coordinator"])
            elif "loaded" in line:
                self._load(line["loaded"])
            elif "stopped" in line:
                self._stop(line["stopped"])
            elif "started" in line:
                self._begin(line["started"])
        return self.answers

    # --- the cluster

    def _begin(self, number: int) -> None:
        node = self._make(self._settings.model_copy(update={"broker_id": number}), self.ids)
        self.nodes[number] = node
        self._open[number] = set()
        self._see()
        for name, count in self._recording.topics.items():
            self.ids.plan_topics([name])
            topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())
            self._step(number, Received(None, CreateTopicsRequest(topics=(topic,)), Context(7)))

    def _see(self) -> None:
        brokers = tuple(Broker(number, HOST, FIRST_PORT + number - 1) for number in sorted(self.nodes))
        leaders = dict.fromkeys(self._partitions, self._leader) if self._leader in self.nodes else {}
        for number in self.nodes:
            self._step(number, ClusterSeen(brokers, leaders))

    def _elect(self, number: int) -> None:
        """One broker leads every offsets partition from now on; a script has one group that matters."""
        before = self._leader
        if before == number and self._epoch:
            return
        self._leader = number
        self._epoch += 1
        for partition in self._partitions:
            if before != number and before in self.nodes:
                self._step(before, Resigned(partition))
            self._step(number, Elected(partition, self._epoch))
        self._see()

    def _stop(self, number: int) -> None:
        del self.nodes[number]
        for asked in self._open.pop(number):
            self.answers[asked] = Answer(self.now - START, CLOSED)

    # --- time and requests

    def _advance(self, until: int) -> None:
        while True:
            due = [(at, number) for number, node in self.nodes.items() if (at := node.next_deadline()) is not None]
            if not due or min(due)[0] > until:
                break
            at, number = min(due)
            self.now = max(self.now, at)
            self._step(number, Elapsed())
        self.now = until

    def _ask(self, asked: Exchange) -> None:
        if asked.api == "EndTxn":
            self._end_transaction(asked)
        if asked.api not in BY_NAME:
            return
        api = BY_NAME[asked.api]
        if not api.supports(asked.version):
            self.answers[asked.number] = Answer(self.now - START, REFUSED)
            return
        try:
            request = api.request.parse(json.dumps(asked.request), asked.version)
        except (ValidationError, WrongVersion):
            self.answers[asked.number] = Answer(self.now - START, REFUSED)
            return
        self.ids.plan(asked)
        self._open[asked.broker].add(asked.number)
        self._step(asked.broker, Received(asked, request, Context(asked.version, asked.client, f"/{HOST}")))

    def _end_transaction(self, asked: Exchange) -> None:
        """What a transaction coordinator does: markers for every offsets partition."""
        marker = WritableTxnMarker(
            producer_id=asked.request["producerId"],
            producer_epoch=asked.request["producerEpoch"],
            transaction_result=asked.request["committed"],
            topics=(WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=tuple(range(len(self._partitions)))),),
            coordinator_epoch=0,
        )
        self._step(asked.broker, Received(None, WriteTxnMarkersRequest(markers=(marker,)), Context(1)))

    def _step(self, number: int, what: Input) -> None:
        for effect in self.nodes[number].step(what, self.now):
            self._take(number, effect)

    def _take(self, number: int, effect: Effect) -> None:
        match effect:
            case Reply(token=Exchange() as asked):
                assert asked.number not in self.answers, "a request is answered once"
                self._open[number].discard(asked.number)
                body = json.loads(effect.response.to_json(asked.version))
                self.answers[asked.number] = Answer(self.now - START, body)
            case Append():
                self._append(number, effect)
            case ReadLog():
                self._unread.append(effect)
                if not self._holds_load:
                    self._load(number)

    def _load(self, number: int) -> None:
        """Hand in what was asked to be read."""
        while self._unread:
            wanted = self._unread.popleft()
            records = tuple(self._logs.get(wanted.partition, ()))
            self._step(number, LogRead(wanted.partition, wanted.epoch, records, True))

    def _append(self, number: int, wanted: Append) -> None:
        if len(self.nodes) < int(self._recording.settings.get(MIN_ISR, "1")):
            return  # Kafka: written by the leader alone, and given up when the others do not follow.
        error = ErrorCode.NONE
        if sum(len(record.model_dump_json()) for record in wanted.records) > self._limit:
            error = ErrorCode.MESSAGE_TOO_LARGE
        else:
            self._logs.setdefault(wanted.partition, []).extend(wanted.records)
        self._step(number, Stored(wanted.partition, wanted.epoch, wanted.append_id, error))
