"""Plays the recordings of produce, fetch and transactions on a node, and compares every answer, field by field.

One file is one script, as played against Kafka 4.4.0: the first line says which topics and settings there were, each
other line is a request with its answer, or something else that was done. Names stand for what a broker makes up:
``pid-1`` for a producer id, ``id:NAME`` for a topic id, ``T+123`` for a time near the recording.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from conformance.participants.producer import transaction_of
from rejoin.conform.comparison.exchanges import FieldDifference, NamedValues
from rejoin.conform.records.described_transaction_log import with_transactions
from rejoin.coordinator.core.cluster.features import NEWEST_LEVELS
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elected,
    Millis,
    PartitionRegistration,
    Token,
    TopicsChanged,
)
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.records.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rejoin.protocol.messages.transactions.describe_transactions import DescribeTransactionsRequest
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.topics import ProducerIdsData, ProducerIdsRecord
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.types import LogPartition, TopicIdPartition
from tests.conformance.transactions.compacted_batches import cut_batches, is_compacted, with_times
from tests.conformance.transactions.recorded_scripts import Action, Script, Step, known_settings
from tests.conformance.wire import WireExchange
from tests.coordinator.core.driver import DrivenNode, uuid_in

MOST_POLLS: Final = 1_000
PORT: Final = 9_091
FIRST_PRODUCER_ID: Final = ProducerIdsRecord(data=ProducerIdsData(broker_id=0, next_producer_id=5_000))
"""So that what is said where there is no producer, 0 among it, is no producer's id."""
ADDRESS: Final[dict[str, dict[Any, Any]]] = {"host": {"node-1": "127.0.0.1"}, "port": {9_095: "port-1"}}
"""Where the node is, as the recordings name it."""


class TimedNode(DrivenNode):
    """Remembers when each request was answered. It ``leads`` everything, or nothing.

    ``drawn`` has the first digit of each id that it draws; it is 0 where nothing is given.
    """

    def __init__(self, *, leads: bool, drawn: str = "", **settings: Any) -> None:
        self.answered_at: dict[Token, Millis] = {}
        self._drawn = drawn
        self.draws: str | None = None
        """The next id to be drawn, where it is known."""
        super().__init__(leads=False, **settings)
        if leads:
            self.lead()

    def _new_id(self) -> str:
        drawn = super()._new_id()
        if self.draws is not None:
            drawn, self.draws = self.draws, None
            return drawn
        digit = self._drawn[self.ids - 1 : self.ids]
        return drawn if digit in ("", "0") else digit + drawn[1:]

    def lead(self) -> None:
        """Lead every offsets partition, in a new epoch."""
        for index in range(self.node.settings.offsets_topic_num_partitions):
            self.elect(offsets_partition(index))

    def restart(self, settings: Mapping[str, Any]) -> None:
        """Begin again with what is in the logs and the topics, and with some other settings."""
        records = self.node.topics_records()
        self.node = Node(self.node.settings.model_copy(update=dict(settings)), self._new_id)
        self.see_cluster()
        self.step(TopicsChanged(((1, records),), 1))
        self.lead()

    def send_as(self, client: str, request: Request, version: int) -> int:
        """Send a client's request; returns the number under which it is answered."""
        self.requests += 1
        self.request(self.requests, request, Context(version, client, "/127.0.0.1"))
        return self.requests

    def on_reply(self, token: Token, response: Response) -> None:
        super().on_reply(token, response)
        self.answered_at[token] = self.now


class RecordedPlay:
    """A node for each broker, with the topics of a script, on which its steps are played."""

    early_ms = 30
    late_ms = 300
    """How much earlier and later than here a broker may answer a request that waits."""

    def __init__(self, script: Script, *, over_wire: bool = False, drawn: str = "") -> None:
        """With ``over_wire`` each request and response goes over a connection of Kafka's protocol."""
        self._script = script
        self._drawn = drawn
        self._over_wire = over_wire
        self._on_wire: dict[int, WireExchange] = {}
        self._waiting: list[tuple[Step, int]] = []
        """Steps that were not answered at once, with the number of their request."""
        self._read: dict[int, dict[str, Any]] = {}
        self._nodes = self._make_nodes()
        self.start = self._nodes[0].now
        self.names = NamedValues(self.start, ADDRESS, is_fresh=script.is_fresh)
        self._prepare()

    def _make_nodes(self) -> list[TimedNode]:
        script = self._script
        usual: dict[str, Any] = {"emulator_records_per_second": None, "transaction_partition_verification_enable": True}
        if script.ids is not None:
            usual["emulator_member_order"] = "hashmap"
            # These were recorded beside other load, and have no shorter timers than of some seconds.
            self.late_ms = 1_000
        return [
            TimedNode(leads=script.brokers == 1, drawn=self._drawn, broker_id=number, **(usual | script.settings))
            for number in range(1, script.brokers + 1)
        ]

    def _prepare(self) -> None:
        """Make what there is before the first step."""
        for driven in self._nodes:
            driven.step(TopicsChanged(((1, (FIRST_PRODUCER_ID,)),), 1))
        script_ids = self._script.ids
        for name, topic in self._script.topics.items():
            given = topic["configs"].items() if is_compacted(self._script) else ()
            creatable = CreatableTopic(
                name=name,
                num_partitions=topic["partitions"],
                replication_factor=-1,
                assignments=(),
                configs=tuple(CreatableTopicConfig(name=each, value=value) for each, value in given),
            )
            for driven in self._nodes:
                # Each node makes up the same ids.
                driven.draws = None if script_ids is None else uuid_in(script_ids[name])
                result = create_topics(driven, creatable).topics[0]
                if not given:
                    driven.node._partitions.configure(result.topic_id, config_of(topic["configs"]))
            self.names.name(result.topic_id, f"id:{name}")
        for transactional_id, epoch in self._script.epochs.items():
            self._know(transactional_id, epoch)
        if self._script.changes_internal_topics:
            self._nodes[0].ask(FindCoordinatorRequest(key_type=1, key="any"), 1)
        if self._script.brokers > 1:
            self._lead(self._script)

    def _know(self, transactional_id: str, epoch: int) -> None:
        """Put the record of a transactional id into the log of its coordinator."""
        driven = self._nodes[0]
        index = partition_for(transactional_id, driven.node.settings.transaction_state_log_num_partitions)
        log = driven.logs.of(TopicIdPartition(TRANSACTION_STATE_TOPIC_ID, index, TRANSACTION_STATE_TOPIC))
        known = FIRST_PRODUCER_ID.data.next_producer_id - 1
        log.records.append(BatchEntry(0, transaction_of(transactional_id, known, epoch, self.start)))

    def _lead(self, script: Script) -> None:
        """Each node leads the partitions that it led in the recording."""
        brokers = tuple(Broker(number, "127.0.0.1", PORT + number) for number in range(1, script.brokers + 1))
        for broker in brokers:
            self.names.name(broker.port, f"port-{broker.node_id}")
        registrations: dict[LogPartition, PartitionRegistration] = {
            TopicIdPartition(self.names.values[f"id:{name}"], index, name): PartitionRegistration(
                tuple(replicas), tuple(replicas), replicas[0]
            )
            for name, topic in script.topics.items()
            for index, replicas in enumerate(topic["assignment"])
        }
        for driven in self._nodes:
            driven.step(ClusterSeen(brokers, {}, registrations))
        for partition, registration in registrations.items():
            self._nodes[registration.leader - 1].step(Elected(partition, registration.leader_epoch))

    def do(self, action: Action) -> None:
        """Do what is no request. Waits end where the next request was sent; those for a state may take longer."""
        fields, driven = action.fields, self._nodes[0]
        if action.what.startswith("wait"):
            # What happens by itself may happen at any time meanwhile.
            self.names.lag = max(self.names.lag, round(fields.get("ended", 0) - fields["began"]))
        match action.what:
            case "wait":
                pass
            case "wait until the transaction is complete":
                self._wait_while(lambda: self._is_decided(fields["transactionalId"]))
            case "wait until no transaction is open":
                self._wait_while(lambda: self._is_open(fields["topic"], fields["partition"]))
            case what if "the broker is" in what:
                driven.elapse(max(0, self.start + round(fields["ended"]) - driven.now))
                driven.restart(known_settings(fields.get("settings", {})))
                self.names.was_restarted = True
            case what:
                raise AssertionError(f"nothing here can do this: {what}")

    def _wait_while(self, is_so: Callable[[], bool]) -> None:
        for _ in range(MOST_POLLS):
            if not is_so():
                return
            for driven in self._nodes:
                driven.elapse(1)
        raise AssertionError("what was waited for never came")

    def _is_decided(self, transactional_id: str) -> bool:
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        return str(self._nodes[0].ask(request, 0).transaction_states[0].transaction_state).startswith("Prepare")

    def _is_open(self, topic: str, partition: int) -> bool:
        wanted = DescribeProducersTopic(name=topic, partition_indexes=(partition,))
        answer = self._nodes[0].ask(DescribeProducersRequest(topics=(wanted,)), 0)
        producers = answer.topics[0].partitions[0].active_producers
        return any(producer.current_txn_start_offset >= 0 for producer in producers)

    def play(self, step: Step) -> list[str]:
        """Every difference between the recorded answer of a step and the node's, if it has answered already."""
        driven = self._nodes[step.broker - 1]
        at = self.start + round(step.sent)
        self.names.lag = max(self.names.lag, driven.now - at, round(step.answered - step.sent))
        driven.elapse(max(int(driven.now > at), at - driven.now))
        for waiting, number in self._waiting:
            if number in self._nodes[waiting.broker - 1].replies:
                self.names.learn(waiting.answer, self._answer(waiting, number))
        api = BY_NAME[step.api]
        if step.answer == "closed" and not api.supports(step.version):
            return []
        body = json.dumps(self.names.to_send(step.request))
        request = api.request.parse(body, step.version)
        if self._over_wire:
            self._on_wire[step.number] = exchange = WireExchange(request, step.version, step.client)
            request = exchange.request
        driven.draws = None if self._script.ids is None else drawn_for(step)
        number = driven.send_as(step.client, request, step.version)
        driven.draws = None
        if step.answer is None or step.answer == "closed":
            return []
        if number not in driven.replies:
            self._waiting.append((step, number))
            return []
        return self._compare(step, number)

    def finish(self) -> list[str]:
        """Differences of the steps that had to wait. They wait as long as they did in Kafka."""
        last = max((step.answered for step, _ in self._waiting), default=0)
        for driven in self._nodes:
            driven.elapse(max(0, self.start + round(last) + self.late_ms - driven.now))
        found = []
        for step, number in self._waiting:
            driven = self._nodes[step.broker - 1]
            if number not in driven.replies:
                found.append(f"{step}: it is parked")
                continue
            early = driven.answered_at[number] - self.start - step.answered
            if not -self.late_ms <= early <= self.early_ms:
                found.append(f"{step}: answered {early:+} ms beside Kafka")
            found += self._compare(step, number)
        return found

    def _compare(self, step: Step, number: int) -> list[str]:
        ours = self._answer(step, number)
        if step.api == "ApiVersions":
            return version_differences(step.answer, ours)
        self.names.learn(step.answer, ours)
        named = self.names.named(with_transactions(ours))
        return [f"{step}: {each}" for each in self._differences(step.answer, named)]

    def _answer(self, step: Step, number: int) -> dict[str, Any]:
        """The answer to a step, as a client reads it."""
        if step.number not in self._read:
            response = self._nodes[step.broker - 1].replies[number]
            on_wire = self._on_wire.get(step.number)
            self._read[step.number] = (
                json.loads(response.to_json(step.version)) if on_wire is None else on_wire.receive(response)
            )
        return self._read[step.number]

    def _differences(self, recorded: Any, named: Any) -> Iterator[FieldDifference]:
        if is_compacted(self._script):
            recorded, named = with_times(recorded), with_times(named)
            # Differs: Kafka's answer ends with a segment, of which there are several.
            named = cut_batches(recorded, named)
        return self.names.differences(recorded, named)


def drawn_for(step: Step) -> str | None:
    """The UUID of the member id that Kafka made up for a request without one."""
    asked, answered = step.request, step.answer
    if step.api not in {"JoinGroup", "ConsumerGroupHeartbeat"} or asked["memberId"] or not answered["memberId"]:
        return None
    named = asked.get("groupInstanceId") or step.client
    return uuid_in(answered["memberId"].removeprefix(f"{named}-"))


def create_topics(driven: Any, topic: CreatableTopic) -> CreateTopicsResponse:
    """Create a topic, which is answered at once."""
    response = driven.ask(CreateTopicsRequest(topics=(topic,)), 7)
    assert isinstance(response, CreateTopicsResponse)
    return response


OF_TRANSACTIONS: Final = {0, 1, 10, 21, 22, 24, 25, 26, 27, 28, 57, 61, 65, 66}
"""The APIs whose versions are those of the recorded broker, but for the oldest that it has given up."""


def version_differences(recorded: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Differences between offered versions, as far as these recordings are about them."""
    newest = {entry["apiKey"]: entry["maxVersion"] for entry in recorded["apiKeys"]}
    offered = {entry["apiKey"]: entry["maxVersion"] for entry in ours["apiKeys"]}
    found = [f"API {key}: {newest[key]} was recorded" for key in OF_TRANSACTIONS if newest[key] != offered.get(key)]
    for features in ("supportedFeatures", "finalizedFeatures"):
        known = sorted((each for each in recorded.get(features, ()) if each["name"] in NEWEST_LEVELS), key=str)
        if sorted(ours.get(features, []), key=str) != known:
            found.append(f"{features}: {known} was recorded")
    return found


def config_of(configs: dict[str, str]) -> TopicConfig:
    """Topic settings as a recording gives them."""
    given: dict[str, Any] = {}
    for each in fields(TopicConfig):
        value = configs.get(each.name.replace("_", "."))
        if value is not None:
            default: Any = each.default
            given[each.name] = type(default)(value) if isinstance(default, int | float) else value
            if each.name == "cleanup_policy":
                given[each.name] = tuple(value.split(","))
    assert len(given) == len(configs), f"not all of these are known: {configs}"
    return TopicConfig(**given)
