"""The names of a run: every group, topic and transactional id that a script names begins with the run's prefix.

Answers are read without it, and lists of all groups or topics without what others have made.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from rejoin.conform.player.messages import Json
from rejoin.protocol.embedded.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rejoin.protocol.types import TopicPartition

TOPIC, GROUP = 2, 32
"""Types of resources with settings that have names of a run."""
INTERNAL: Final = "__"
DEAD_LETTERS: Final = "dlq."
"""The beginning of the names of topics of dead letters, which a broker asks for; a run's prefix comes after it."""
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
"""The setting of a group that names such a topic."""
LONGEST: Final = 200
"""Longer names are about the limits of names, and stay."""
FIELDS: Final = frozenset(
    {"groupId", "groupIds", "groupsNames", "groups", "transactionalId", "v3AndBelowTransactionalId"}
    | {"transactionalIds", "key", "coordinatorKeys", "topic", "topicNames", "topicName"}
    | {"subscribedTopicNames", "subscribedTopicRegex", "sourceTopics", "repartitionSinkTopics"}
)
PATTERN: Final = "transactionalIdPattern"
_BEGIN_OF_PATTERN: Final = re.compile(r"(\(\?[A-Za-z-]+\))?\^?")
"""Flags of a regular expression, and its anchor."""
LISTS_OF_TOPICS: Final = frozenset(
    {"topics", "v3AndBelowTopics", "topicData", "stateChangelogTopics", "repartitionSourceTopics"}
)
PAIRS: Final = frozenset({"topicConfigs", "clientTags"})
"""Lists of pairs of streams groups, in which a key is no name."""
SUBSCRIPTIONS: Final = frozenset({"metadata", "memberMetadata"})
ASSIGNMENTS: Final = frozenset({"assignment", "memberAssignment"})
WITH_BYTES: Final = frozenset({"JoinGroup", "SyncGroup", "DescribeGroups"})
Rename = Callable[[str], str]


class RunPrefix:
    """Puts a prefix before names that are sent, and takes it from names that come back."""

    def __init__(self, text: str) -> None:
        self.text: Final = text

    def outgoing(self, api: str, body: Json) -> Json:
        """A request as it is sent."""
        found: Json = self._outgoing(api, body, "", "", {})
        return found

    def name(self, plain: str) -> str:
        """The name of a topic of the run."""
        return self._of_dead_letters(plain) or self.text + plain

    def plain(self, name: str) -> str:
        """The name that a script uses."""
        return self._remove(name)

    def is_of_run(self, name: str) -> bool:
        """Whether something with this name was made by the run."""
        return name.startswith((self.text, DEAD_LETTERS + self.text))

    def incoming(self, api: str, request: Json, answer: Json) -> Json:
        """The answer as the script reads it."""
        for name, key in (("ListGroups", "groups"), ("Metadata", "topics")):
            if api == name and (name == "ListGroups" or request.get(key) is None):
                ours = [one for one in answer[key] if str(one.get("groupId", one.get("name"))).startswith(self.text)]
                answer = {**answer, key: ours}
        found: Json = self._incoming(api, answer, "")
        return found

    def _outgoing(self, api: str, value: Any, key: str, of: str, within: Json) -> Any:
        if isinstance(value, dict):
            return {name: self._outgoing(api, each, name, key, value) for name, each in value.items()}
        if isinstance(value, list):
            return [self._outgoing(api, each, key, of, within) for each in value]
        if not isinstance(value, str):
            return value
        if api in WITH_BYTES and key in SUBSCRIPTIONS | ASSIGNMENTS:
            return renamed(value, key, self._add)
        if key == PATTERN:
            return self._add_to_pattern(value)
        is_name = (key in FIELDS and of not in PAIRS) or (key == "name" and of in LISTS_OF_TOPICS)
        is_name = is_name or (key == "resourceName" and within.get("resourceType") in (TOPIC, GROUP))
        is_name = is_name or (key == "value" and within.get("name") == DEAD_LETTER_TOPIC)
        return self._add(value) if is_name else value

    def _incoming(self, api: str, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: self._incoming(api, each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._incoming(api, each, key) for each in value]
        if not isinstance(value, str):
            return value
        if api in WITH_BYTES and key in SUBSCRIPTIONS | ASSIGNMENTS:
            return renamed(value, key, self._remove)
        return self._remove(value)

    def _add(self, name: str) -> str:
        stays = name.startswith(INTERNAL) or len(name) > LONGEST or not name[:1].isalnum()
        return name if stays else self.name(name)

    def _of_dead_letters(self, plain: str) -> str | None:
        is_one = plain.startswith(DEAD_LETTERS)
        return f"{DEAD_LETTERS}{self.text}{plain.removeprefix(DEAD_LETTERS)}" if is_one else None

    def _add_to_pattern(self, pattern: str) -> str:
        begin = _BEGIN_OF_PATTERN.match(pattern)
        assert begin is not None, "it matches nothing, too"
        return f"{begin[1] or ''}{self.text}(?:{pattern[begin.end() :]})" if pattern else pattern

    def _remove(self, name: str) -> str:
        if name.startswith(DEAD_LETTERS + self.text):
            return DEAD_LETTERS + name.removeprefix(DEAD_LETTERS + self.text)
        return name.removeprefix(self.text)


def renamed(data: str, key: str, rename: Rename) -> str:
    """A subscription or an assignment with other names of topics; other bytes stay as they are."""
    given = base64.b64decode(data)
    version = int.from_bytes(given[:2], "big")
    try:
        if key in SUBSCRIPTIONS:
            found = decode_subscription(given)
            if encode_subscription(found, version) != given:
                return data
            owned = tuple(TopicPartition(rename(each.topic), each.partition) for each in found.owned_partitions)
            topics = tuple(map(rename, found.topics))
            new = encode_subscription(replace(found, topics=topics, owned_partitions=owned), version)
        else:
            shared = decode_assignment(given)
            if encode_assignment(shared, version) != given:
                return data
            partitions = tuple(TopicPartition(rename(each.topic), each.partition) for each in shared.partitions)
            new = encode_assignment(replace(shared, partitions=partitions), version)
    except ValueError:
        return data
    return base64.b64encode(new).decode()
