"""Plays scripts that were recorded on a real broker on one node, and compares each reply field by field."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import ConnectionLost, Context, TopicsChanged, TopicsRecords
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.share.reading import batches_of
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.records.share_group_state import ShareRecordType
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC
from rejoin.protocol.records.table import BY_RECORD
from rejoin.protocol.registry import DEFINED, Api
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from rejoin.protocol.wire.records import DefaultRecord, read_batch
from rejoin.protocol.wire.state_topics.share_group_state import read_record
from tests.coordinator.core.driver import PARTITION, Driver, uuid_in

SETTINGS: Final = {
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
    "share_coordinator_state_topic_num_partitions": 1,
    "group_share_assignment_interval_ms": 0,
    "group_share_min_record_lock_duration_ms": 1_000,
    "group_share_min_session_timeout_ms": 1_000,
    "group_share_min_heartbeat_interval_ms": 500,
    "group_initial_rebalance_delay_ms": 0,
    "share_coordinator_snapshot_update_records_per_snapshot": 5,
}
"""The settings of the recorded broker."""

NAMES: Final = {ShareRecordType.SNAPSHOT: "ShareSnapshot", ShareRecordType.UPDATE: "ShareUpdate"}

_APIS: Final[dict[str, Api]] = {api.name: api for api in DEFINED.values()}
_UNKNOWN_ID: Final = "nobodyhasthisnobodyhaw"


def scripts(path: Path) -> list[dict[str, Any]]:
    """The recorded scripts."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


class ScriptPlayer:
    """One node, several named connections."""

    def __init__(self, **settings: Any) -> None:
        self.ids = 0
        self.node = Node(Settings.model_validate(SETTINGS | settings), self._new_id)
        self.driver = Driver(self.node)
        self.driver.see_cluster()
        self.driver.elect(PARTITION)
        self.topic_ids: dict[str, str] = {}
        self.sent = 0
        self.parked: dict[str, tuple[int, Api, int]] = {}
        self.connections: dict[str, int] = {}
        # The internal topics of the recorded broker were there before.
        key = "g:AAAAAAAAAAAAAAAAAAAAAA:0"
        self.ask("setup", "FindCoordinator", 6, {"keyType": 2, "coordinatorKeys": [key]})

    def _new_id(self) -> str:
        self.ids += 1
        return uuid_in(f"{self.ids:032x}")

    def learn(self, records: TopicsRecords) -> None:
        """Topics that were there before."""
        self.driver.step(TopicsChanged(((1, records),), 1))

    # --- steps

    def play(self, step: dict[str, Any]) -> Any:
        """Carry out a step; returns the reply in the form of the recording, or none for a step that has none."""
        match step:
            case {"sleep": length}:
                self.driver.elapse(length)
            case {"produce": topic}:
                return self.produce(topic, step)
            case {"close": connection}:
                self.close(connection)
            case {"log": topic}:
                return self.log(topic, step["partition"], step["records"])
            case {"send": name}:
                connection = step["connection"]
                number, api = self.send(connection, name, step["version"], step["body"])
                self.parked[connection] = (number, api, step["version"])
            case {"receive": _}:
                number, api, version = self.parked.pop(step["connection"])
                self.driver.elapse(step["ms"])
                return self.described(api, version, self.driver.replies[number])
            case {"api": name, "reply": _}:
                return self.ask(step["connection"], name, step["version"], step["body"])
            case _:
                raise NotImplementedError(sorted(step))
        return None

    @staticmethod
    def expected(step: dict[str, Any]) -> Any:
        """The recorded result of a step, or none for a step that has none."""
        if "produce" in step:
            return {"errorCode": step["errorCode"], "baseOffset": step["baseOffset"]}
        if step.get("api") == "CreateTopics":
            return None
        return step["records"] if "log" in step else step.get("reply")

    def ask(self, connection: str, name: str, version: int, body: dict[str, Any]) -> Any:
        number, api = self.send(connection, name, version, body)
        while number not in self.driver.replies:
            # It waits: nothing else happens meanwhile.
            due = self.driver.next_deadline()
            assert due is not None, "a request that waits has a timer"
            self.driver.elapse(due - self.driver.now)
        return self.described(api, version, self.driver.replies[number])

    def send(self, connection: str, name: str, version: int, body: dict[str, Any]) -> tuple[int, Api]:
        api = _APIS[name]
        if name == "CreateTopics":
            body = body | {"topics": [{"assignments": []} | topic for topic in body["topics"]]}
        elif name == "IncrementalAlterConfigs":
            body = {"validateOnly": False} | body
        codec = codec_of(api.key, version)
        assert codec is not None
        # The recorder wrote fields that not every version carries; on the wire they were gone.
        written = codec.write_request(api.request.from_json(json.dumps(self.with_ids(body))))
        request = codec.read_request(written, 0)
        self.sent += 1
        life = self.connections.setdefault(connection, 0)
        context = Context(version, f"client-{connection}", "/127.0.0.1", connection=f"{connection}/{life}")
        self.driver.request(self.sent, request, context)
        return self.sent, api

    def close(self, connection: str) -> None:
        life = self.connections.get(connection, 0)
        self.connections[connection] = life + 1
        self.driver.step(ConnectionLost(f"{connection}/{life}"))

    def produce(self, topic: str, step: dict[str, Any]) -> dict[str, Any]:
        batches = step["records"] if isinstance(step["records"], list) else [step["records"]]
        first = None
        for count in batches:
            now = step.get("timestamp", self.driver.now)
            builder = BatchBuilder(now)
            for offset in range(count):
                builder.append(encode_record(0, offset, f"k{offset}".encode(), f"v{offset}".encode()), now)
            data = bytes(builder.seal(CompressionType.NONE))
            number, _ = self.send_produce(topic, step.get("partition", 0), data)
            response = self.driver.replies[number]
            assert isinstance(response, ProduceResponse)
            result = response.responses[0].partition_responses[0]
            first = result if first is None else first
        assert first is not None, "a step produces something"
        return {"errorCode": int(first.error_code), "baseOffset": first.base_offset}

    def send_produce(self, topic: str, partition: int, data: bytes) -> tuple[int, Api]:
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1_000,
            topic_data=(
                TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=data),)),
            ),
        )
        self.sent += 1
        self.driver.request(self.sent, request, Context(9, "producer"))
        return self.sent, _APIS["Produce"]

    # --- logs of internal topics and of dead letters

    def log(self, topic: str, partition: int, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records of a log, as the recording has them."""
        if topic == "__consumer_offsets":
            return self.offsets_log(expected)
        found = self.node.read_log(topic, partition, 0, 2**30, self.driver.now)
        assert not isinstance(found, ErrorCode), found
        records = []
        for batch in batches_of(found.batches):
            for each in read_batch(found.batches[batch.begin : batch.end]):
                offset = batch.header.base_offset + each.offset_delta
                records.append(self.kept_state(each) if topic == SHARE_GROUP_STATE_TOPIC else letter(offset, each))
        if topic == SHARE_GROUP_STATE_TOPIC:
            groups = {each["key"]["groupId"] for each in expected}
            return [each for each in records if each["key"]["groupId"] in groups]
        return records

    def kept_state(self, record: DefaultRecord) -> dict[str, Any]:
        """A record of the share coordinator."""
        assert record.key is not None
        found = read_record(record.key, record.value)
        assert found is not None
        self.topic_ids |= {topic.topic_id: f"@{topic.name}" for topic in self.node._topics.by_name.values()}
        value = None if found.value is None else json.loads(found.value.to_json(0))
        for field in ("createTimestamp", "writeTimestamp"):
            if value is not None and field in value:
                value[field] = "*"
        group_id, topic_id, partition = found.key
        key = {"groupId": group_id, "topicId": self.topic_ids.get(topic_id, topic_id), "partition": partition}
        described = {"type": int(found.type), "name": NAMES[found.type], "key": key, "value": value}
        return described if value is None else described | {"version": 0}

    def offsets_log(self, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records of the groups that are expected, in the log of the group coordinator."""
        groups = {each["key"]["groupId"] for each in expected}
        described = []
        for record in self.driver.log:
            if isinstance(record, TransactionMarker):
                continue
            key = json.loads(record.key.data.to_json(record.key.version))
            if key.get("groupId") in groups:
                value = None if record.value is None else json.loads(record.value.data.to_json(record.value.version))
                if value is not None and "assignmentEpoch" in value:
                    value.setdefault("assignmentTimestamp", 0)  # it is written where it differs from the default
                for field in ("metadataHash", "assignmentTimestamp"):
                    if value is not None and value.get(field):
                        value[field] = "*"
                version = {} if record.value is None else {"version": record.value.version}
                name = BY_RECORD[type(record)].name
                kind = {"type": record.key.version, "name": name, "key": key, "value": value}
                described.append(self._described(kind | version))
        return described

    # --- names and forms

    def with_ids(self, value: Any) -> Any:
        """Topic ids in place of their names in the recording, which writes empty lists as empty objects."""
        if value == {}:
            return []
        if isinstance(value, dict):
            return {key: self.with_ids(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.with_ids(each) for each in value]
        if isinstance(value, str) and "@" in value:
            return re.sub(r"@[?\w.-]+", lambda found: self._id(found.group()), value)
        return value

    def _id(self, name: str) -> str:
        if name == "@?":
            return _UNKNOWN_ID
        topic = self.node._topics.by_name.get(name[1:])
        if topic is not None:
            self.topic_ids[topic.topic_id] = name
            return topic.topic_id
        return next((topic_id for topic_id, known in self.topic_ids.items() if known == name), _UNKNOWN_ID)

    def described(self, api: Api, version: int, response: Any) -> Any:
        """A response as the recording has it: names for topic ids, batches for bytes, a star for messages."""
        self.topic_ids |= {topic.topic_id: f"@{topic.name}" for topic in self.node._topics.by_name.values()}
        value = json.loads(response.to_json(version))
        return self._described(value)

    def _described(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._described(each) for each in value]
        if not isinstance(value, dict):
            return value
        found: dict[str, Any] = {}
        for key, each in value.items():
            if key == "records" and isinstance(each, str):
                found[key] = [list(batch) for batch in _batches(base64.b64decode(each))]
            elif key.endswith(("ErrorMessage", "errorMessage")):
                found[key] = "*" if each else each
            elif key == "key" and isinstance(each, str):
                group, _, rest = each.partition(":")
                topic_id, _, index = rest.partition(":")
                found[key] = f"{group}:{self.topic_ids.get(topic_id, topic_id)}:{index}" if index else each
            elif key == "topicId":
                found[key] = self.topic_ids.get(each, "@?" if each == _UNKNOWN_ID else each)
            else:
                found[key] = self._described(each)
        return found


def letter(offset: int, record: DefaultRecord) -> dict[str, Any]:
    """A dead letter as the recording has it."""
    headers = [[name, None if value is None else value.decode()] for name, value in record.headers]
    key, value = (None if each is None else each.decode() for each in (record.key, record.value))
    return {"offset": offset, "key": key, "value": value, "headers": headers}


def _batches(data: bytes) -> Iterator[tuple[int, int, str]]:
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        header = parse_header(data[:size])
        kind = "control" if header.is_control else "transactional" if header.is_transactional else "plain"
        yield header.base_offset, header.last_offset, kind
        data = data[size:]


LEFT_OUT: Final = frozenset(
    ("errorMessage", "acknowledgeErrorMessage", "throttleTimeMs", "nodeEndpoints", "host", "port", "clusterId")
)
"""Fields that differ by nature, or are left out of the recording."""


def comparable(value: Any) -> Any:
    """A reply without what differs by nature: messages, order of topics and partitions.

    The hash of topic ids, which are random, decides who gets which partitions: of an assignment the number is compared.
    """
    if isinstance(value, dict):
        if value.keys() == {"topicId", "partitions"} and not any(
            isinstance(each, dict) for each in value["partitions"]
        ):
            return value | {"partitions": len(value["partitions"])}
        return {key: comparable(each) for key, each in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        items = [comparable(each) for each in value]
        if items and all(isinstance(each, dict) for each in items):
            return sorted(items, key=lambda each: json.dumps(each, sort_keys=True))
        return items
    return value
