"""Names for the values that a broker makes up, in order of appearance: two recordings of a script are then alike.

Recordings of steps and those of other scripts have names of their own form, which their files keep.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Final

from rejoin.conform.player.messages import ZERO_ID, Json
from rejoin.conform.records.described_records import described_batches
from rejoin.conform.records.described_transaction_log import PRODUCER_IDS

FIRST_PORT: Final = 9091
_MEMBER_ID = re.compile(r"(.*)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.DOTALL)


def topic_id(name: str) -> str:
    """The id that a topic has in recordings of steps."""
    return base64.urlsafe_b64encode(topic_id_bytes(name)).decode()[:22]


def topic_id_bytes(name: str) -> bytes:
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()


class Names:
    """The names of one recording."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._counts: dict[str, int] = {}

    def give(self, value: Any, prefix: str) -> None:
        """Name a value after its prefix and its turn, unless it has a name."""
        if value not in self._names:
            self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self._names[value] = f"{prefix}-{self._counts[prefix]}"

    def named(self, value: Any, key: str = "", within: Json | None = None) -> Any:
        """A message, or a part of one, with names in place of made-up values."""
        if isinstance(value, dict):
            return {name: self.named(each, name, value) for name, each in value.items()}
        if isinstance(value, list):
            return [self.named(each, key, within) for each in value]
        return self._leaf(value, key, within or {})

    def _leaf(self, value: Any, key: str, within: Json) -> Any:
        """A value that is no list and no object."""
        raise NotImplementedError


class StepNames(Names):
    """Names in recordings of steps.

    A member id ``a-4f1c…`` becomes ``a-1``; a topic's id is made from its name; ports follow from the broker's number;
    lists of all groups or topics of the cluster are cut down to those of the script.
    """

    def __init__(self, group: str, topics: frozenset[str]) -> None:
        super().__init__()
        self._group = group
        self._topics = set(topics)

    def learn(self, member_id: str, prefix: str) -> None:
        """Name an id that a member was given; other emulators make theirs differently."""
        if _MEMBER_ID.fullmatch(member_id) is None:
            self.give(member_id, prefix)

    def of(self, api: str, message: Json) -> Any:
        """A request or a response with its names."""
        if api == "ListGroups" and "groups" in message:
            message = {**message, "groups": [one for one in message["groups"] if self._is_ours(one["groupId"])]}
        if api == "Metadata" and "brokers" in message:
            message = {**message, "topics": [one for one in message["topics"] if self._is_known(one["name"])]}
        if api == "Metadata" and "brokers" not in message:
            self._topics |= {one["name"] for one in message["topics"] or ()}
        self._learn_topic_ids(message)
        return self.named(message)

    def _is_ours(self, group_id: str) -> bool:
        return group_id == self._group or group_id.startswith(f"{self._group}.")

    def _is_known(self, topic: str | None) -> bool:
        return topic is None or topic in self._topics or self._group in topic

    def _learn_topic_ids(self, value: Any) -> None:
        if isinstance(value, dict):
            name = value.get("name")
            if isinstance(name, str) and value.get("topicId", ZERO_ID) != ZERO_ID:
                self._names[value["topicId"]] = topic_id(name)
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                self._learn_topic_ids(each)

    def _leaf(self, value: Any, key: str, within: Json) -> Any:
        if key == "port" and value > 0 and within:
            return FIRST_PORT + (within["brokerId"] if "brokerId" in within else within["nodeId"]) - 1
        if not isinstance(value, str):
            return value
        found = None if key == "topicId" else _MEMBER_ID.fullmatch(value)
        if found is not None:
            self.give(value, found[1])
        return self._names.get(value, value)


NAMED: Final = {"producerId": "pid", "sessionId": "session", "memberId": "member"}
"""RunPrefix of the names in each field that a broker makes up."""
NAMED_FIELDS: Final = {
    "producerId",
    "v3AndBelowProducerId",
    "sessionId",
    "memberId",
    "leader",
    "topicId",
    *PRODUCER_IDS,
}
NEAR_MS: Final = 40 * 24 * 3_600_000
"""Times that are this near to a recording are recorded as the difference to its start."""


class ExchangeNames(Names):
    """Names in recordings of exchanges.

    ``pid-1`` is a producer id, ``id:NAME`` a topic id; ``member-1``, ``session-1`` and ``port-1`` are named alike, and
    times near the recording are ``T+123``.
    """

    def __init__(self, topic_ids: dict[str, str], brokers_by_port: dict[int, int], start_ms: int) -> None:
        super().__init__()
        self._brokers_by_port = brokers_by_port
        self._start_ms = start_ms
        for name, identity in topic_ids.items():
            self.learn_topic(name, identity)

    def learn_topic(self, name: str, identity: str) -> None:
        self._names[identity] = f"id:{name}"

    def learn(self, value: Any) -> None:
        """Name all that is new in an answer."""
        if isinstance(value, dict):
            for key, prefix in NAMED.items():
                made_up = value.get(key)
                if made_up not in (None, -1, 0, "") or (key == "producerId" and made_up == 0):
                    self.give(made_up, prefix)
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                self.learn(each)

    def named(self, value: Any, key: str = "", within: Json | None = None) -> Any:
        return super().named(value, "producerId" if key == "producerIdFilters" else key, within)

    def _leaf(self, value: Any, key: str, within: Json) -> Any:
        if key == "records":
            return self._records(value)
        if (key == "sessionId" and value == 0) or (key == "topicId" and value == ZERO_ID):
            return value
        if key in NAMED_FIELDS:
            return self._names.get(value, value)
        if key == "port" and within and value > 0:
            return f"port-{self._brokers_by_port.get(value, 0)}"
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        between = value - self._start_ms
        return f"T{between:+}" if abs(between) < NEAR_MS else value

    def _records(self, value: bytes | str | None) -> Any:
        if value is None:
            return None
        found = described_batches(base64.b64decode(value) if isinstance(value, str) else value)
        for batch in found["batches"]:
            for key in ("producerId", "baseTimestamp", "maxTimestamp"):
                batch[key] = self.named(batch[key], key)
        return found
