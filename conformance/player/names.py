"""Makes two recordings of the same script alike: what a broker draws at random gets a name, in order of appearance.

A member id ``a-4f1c…`` becomes ``a-1``; a topic's id is made from its name; ports follow from the broker's number; of
lists of everything there is in the cluster only what belongs to the script stays.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Final

from rejoin.protocol.types import ZERO_UUID

Json = dict[str, Any]

FIRST_PORT: Final = 9091
_MEMBER_ID = re.compile(r"(.*)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.DOTALL)


def topic_id(name: str) -> str:
    """The id that a topic has in recordings."""
    return base64.urlsafe_b64encode(topic_id_bytes(name)).decode()[:22]


def topic_id_bytes(name: str) -> bytes:
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()


class Normalizer:
    """The names of one recording."""

    def __init__(self, group: str, topics: frozenset[str]) -> None:
        self._group = group
        self._topics = set(topics)
        self._members: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._topic_ids: dict[str, str] = {ZERO_UUID: ZERO_UUID}

    def learn(self, member_id: str, prefix: str) -> None:
        """A member was given this id; other emulators make theirs differently."""
        if _MEMBER_ID.fullmatch(member_id) is None and member_id not in self._members:
            self._name(member_id, prefix)

    def normalized(self, api: str, message: Json) -> Json:
        """The message with names instead of what was drawn."""
        if api == "ListGroups" and "groups" in message:
            message = {**message, "groups": [one for one in message["groups"] if self._is_ours(one["groupId"])]}
        if api == "Metadata" and "brokers" in message:
            message = {**message, "topics": [one for one in message["topics"] if self._is_known(one["name"])]}
        if api == "Metadata" and "brokers" not in message:
            self._topics |= {one["name"] for one in message["topics"] or ()}
        self._learn_topic_ids(message)
        named: Json = self._named(message)
        return named

    def _is_ours(self, group_id: str) -> bool:
        return group_id == self._group or group_id.startswith(f"{self._group}.")

    def _is_known(self, topic: str | None) -> bool:
        return topic is None or topic in self._topics or self._group in topic

    def _learn_topic_ids(self, value: Any) -> None:
        if isinstance(value, dict):
            name = value.get("name")
            if isinstance(name, str) and value.get("topicId", ZERO_UUID) != ZERO_UUID:
                self._topic_ids[value["topicId"]] = topic_id(name)
            for item in value.values():
                self._learn_topic_ids(item)
        elif isinstance(value, list):
            for item in value:
                self._learn_topic_ids(item)

    def _named(self, value: Any, key: str = "", within: Json | None = None) -> Any:
        if isinstance(value, dict):
            return {name: self._named(item, name, value) for name, item in value.items()}
        if isinstance(value, list):
            return [self._named(item, key, within) for item in value]
        if key == "topicId":
            return self._topic_ids.get(value, value)
        if key == "port" and value > 0 and within is not None:
            return FIRST_PORT + (within["brokerId"] if "brokerId" in within else within["nodeId"]) - 1
        if isinstance(value, str):
            return self._member(value)
        return value

    def _member(self, text: str) -> str:
        found = _MEMBER_ID.fullmatch(text)
        if text not in self._members and found is not None:
            self._name(text, found[1])
        return self._members.get(text, text)

    def _name(self, member_id: str, prefix: str) -> None:
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        self._members[member_id] = f"{prefix}-{self._counts[prefix]}"
