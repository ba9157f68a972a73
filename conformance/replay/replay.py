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
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from rejoin.conform.comparison.compare import CLOSED, REFUSED, RecordedAnswer, RecordedExchange, exchanges
from rejoin.conform.player.names import FIRST_PORT, topic_id_bytes
from rejoin.conform.steps.requests import Step
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.inputs import Broker, ClusterSeen, Context, Token, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.storage.codec import encode
from rejoin.journal.events.base import Event
from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, WrongVersion
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.topics import ProducerIdsData, ProducerIdsRecord
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.types import TopicIdPartition
from rejoin.transcript.driver import START, AppendDone, NodeDriver, NodeLogs

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
    steps: list[Step]
    lines: list[dict[str, Any]]

    @property
    def exchanges(self) -> list[RecordedExchange]:
        return exchanges(self.lines)


def read(path: Path) -> Recording:
    """Read a golden file."""
    header, *lines = (json.loads(line) for line in path.read_text().splitlines())
    for line in lines:
        if line.get("api") == "TxnOffsetCommit" and "generationId" in line.get("request", {}):
            # The recorder's library has the field's name from before Kafka 4.
            line["request"]["generationIdOrMemberEpoch"] = line["request"].pop("generationId")
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

    def plan(self, asked: RecordedExchange) -> None:
        """Plan the ids that this request will draw, according to Kafka's answer."""
        self._planned.clear()
        answer = asked.answer.body if asked.answer is not None and asked.answer.body != CLOSED else {}
        if asked.api == "JoinGroup" and not asked.request["memberId"] and answer.get("memberId"):
            self._planned.append(answer["memberId"].rpartition("-")[2])
        elif asked.api == "CreateTopics":
            made = [topic["name"] for topic in answer.get("topics", ()) if not topic["errorCode"]]
            self.plan_topics([topic["name"] for topic in asked.request["topics"] if topic["name"] in made])
        elif asked.api == "Metadata":
            self.plan_topics([topic["name"] for topic in asked.request["topics"] or () if topic["name"]])


class ReplayLogs(NodeLogs):
    """The offsets log of all brokers. It refuses what the recorded brokers' settings make them refuse."""

    def __init__(self, settings: dict[str, str]) -> None:
        super().__init__()
        self.in_sync = 0
        """How many brokers run."""
        self._min_in_sync = int(settings.get(MIN_ISR, "1"))
        self._limit = int(settings.get(MESSAGE_LIMIT, "1000000"))

    def append(self, append: Append, done: AppendDone) -> None:
        if self.in_sync < self._min_in_sync:
            return  # Kafka: written by the leader alone, and given up when the others do not follow.
        is_data = isinstance(append.partition, TopicIdPartition)
        if not is_data and sum(len(encode(record).value or "") for record in append.records) > self._limit:
            done(ErrorCode.MESSAGE_TOO_LARGE)
        else:
            super().append(append, done)


Show: TypeAlias = Callable[[RecordedExchange, Response], dict[str, Any]]


class BrokerDriver(NodeDriver):
    """One broker. It answers requests, and knows which ones are open."""

    def __init__(self, node: Node, logs: NodeLogs, now: int, answers: dict[int, RecordedAnswer], show: Show) -> None:
        """``show`` makes JSON of a response."""
        super().__init__(node, logs, self, now)
        self._show = show
        self.open: set[int] = set()
        self._answers = answers

    def on_reply(self, token: Token, response: Response) -> None:
        if isinstance(token, RecordedExchange):
            assert token.number not in self._answers, "a request is answered once"
            self.open.discard(token.number)
            self._answers[token.number] = RecordedAnswer(self.now - START, self._show(token, response))

    def on_event(self, event: Event) -> None:
        pass


def is_served(asked: RecordedExchange) -> bool:
    """Whether a node has an answer of its own to a recorded request."""
    return asked.api in BY_NAME


def planned_producer_ids(asked: RecordedExchange) -> TopicsChanged | None:
    """A record by which a node gives this request the producer id that Kafka gave, if it gave one."""
    answer = asked.answer.body if asked.answer is not None and asked.answer.body != CLOSED else {}
    if asked.api != "InitProducerId" or answer["producerId"] < 0:
        return None
    taken = ProducerIdsRecord(data=ProducerIdsData(broker_id=0, next_producer_id=answer["producerId"]))
    return TopicsChanged(((1, (taken,)),), 1)


class Emulator:
    """As many nodes as the recording had brokers, one log, and a clock that stands still between the lines."""

    def __init__(self, recording: Recording, node: Callable[[Settings, Callable[[], str]], Node] = Node) -> None:
        self._recording = recording
        self._make = node
        self.ids = Ids()
        self.answers: dict[int, RecordedAnswer] = {}
        self._now = START
        self._settings = settings_of(recording)
        self._logs = ReplayLogs(recording.settings)
        self._partitions = [offsets_partition(index) for index in range(self._settings.offsets_topic_num_partitions)]
        self._leader: int | None = None
        self.brokers: dict[int, BrokerDriver] = {}
        for number in range(1, recording.brokers + 1):
            self._begin(number)

    def play(self) -> dict[int, RecordedAnswer]:
        """Every line of the recording; the answers by number of request."""
        asked = {one.number: one for one in self._recording.exchanges}
        for line in self._recording.lines:
            self._advance(START + line["at"])
            if "request" in line:
                self._ask(asked[line["n"]])
            elif "coordinator" in line:
                self._logs.defers_reads = line.get("loading", False)
                self._elect(line["coordinator"])
            elif "loaded" in line:
                self._load()
            elif "stopped" in line:
                self._stop(line["stopped"])
            elif "started" in line:
                self._begin(line["started"])
        return self.answers

    # --- the cluster

    def _begin(self, number: int) -> None:
        node = self._make(self._settings.model_copy(update={"broker_id": number}), self.ids)
        self.brokers[number] = BrokerDriver(node, self._logs, self._now, self.answers, self.show)
        self._logs.in_sync = len(self.brokers)
        self._see()
        for name, count in self._recording.topics.items():
            self.ids.plan_topics([name])
            topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())
            self.brokers[number].request(None, CreateTopicsRequest(topics=(topic,)), Context(7))

    def _see(self) -> None:
        nodes = tuple(Broker(number, HOST, FIRST_PORT + number - 1) for number in sorted(self.brokers))
        leader = 1 if self._leader is None else self._leader
        leaders = dict.fromkeys(self._partitions, leader) if leader in self.brokers else {}
        for broker in self.brokers.values():
            broker.step(ClusterSeen(nodes, leaders))

    def _elect(self, number: int) -> None:
        """One broker leads every offsets partition from now on; a script has one group that matters."""
        before, self._leader = self._leader, number
        if before == number:
            return
        for partition in self._partitions:
            if before in self.brokers:
                self.brokers[before].resign(partition)
            self.brokers[number].elect(partition)
        self._see()

    def _load(self) -> None:
        """End every pending read."""
        while self._logs.pending_reads:
            self._logs.end_read()

    def _stop(self, number: int) -> None:
        for asked in self.brokers.pop(number).open:
            self.answers[asked] = RecordedAnswer(self._now - START, CLOSED)
        self._logs.in_sync = len(self.brokers)

    # --- time and requests

    def _advance(self, until: int) -> None:
        while True:
            due = [
                (at, number) for number, broker in self.brokers.items() if (at := broker.next_deadline()) is not None
            ]
            if not due or min(due)[0] > until:
                break
            at, number = min(due)
            self._set_clocks(at)
            self.brokers[number].fire()
        self._set_clocks(until)

    def _set_clocks(self, now: int) -> None:
        self._now = now
        for broker in self.brokers.values():
            broker.now = now

    def _ask(self, asked: RecordedExchange) -> None:
        if not is_served(asked):
            return
        api = BY_NAME[asked.api]
        oldest, newest = offered()[api.key]
        if not oldest <= asked.version <= newest:
            self.answers[asked.number] = RecordedAnswer(self._now - START, REFUSED)
            return
        try:
            request = api.request.parse(json.dumps(asked.request), asked.version)
        except (ValidationError, WrongVersion):
            self.answers[asked.number] = RecordedAnswer(self._now - START, REFUSED)
            return
        self.ids.plan(asked)
        broker = self.brokers[asked.broker]
        planned = planned_producer_ids(asked)
        if planned is not None:
            broker.step(planned)
        broker.open.add(asked.number)
        self.hand_in(broker, asked, request)

    def hand_in(self, broker: BrokerDriver, asked: RecordedExchange, request: Request) -> None:
        """Give a request to a broker."""
        broker.request(asked, request, Context(asked.version, asked.client, f"/{HOST}"))

    def show(self, asked: RecordedExchange, response: Response) -> dict[str, Any]:
        """A response as its client reads it."""
        found: dict[str, Any] = json.loads(response.to_json(asked.version))
        return found
