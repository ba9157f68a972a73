"""Requests in an older version than the recorded one, for a broker that does not have it: where both ask the same.

Topics are named in place of their ids, and fields that only a newer version has are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rejoin.conform.player.messages import Json, api_key, without_newer_fields

OLDEST_ALIKE: Final = {
    "ApiVersions": 4,
    "ConsumerGroupDescribe": 0,
    "ConsumerGroupHeartbeat": 0,
    "DeleteGroups": 2,
    "Fetch": 17,
    "ListOffsets": 9,
    "ListTransactions": 1,
    "Metadata": 12,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
    "Produce": 12,
    "TxnOffsetCommit": 5,
    "WriteTxnMarkers": 1,
}
"""The oldest version of each API that asks a broker the same as its newest one does."""
OLDEST_OUTSIDE_TRANSACTIONS: Final = {"Produce": 11}
"""Produce adds a partition to its transaction since version 12, and asks the same outside of one (KIP-890)."""
NAMED_TOPICS_BEFORE: Final = frozenset({"OffsetCommit", "OffsetFetch", "Produce", "TxnOffsetCommit"})
"""APIs whose newest versions have ids of topics in place of their names."""
UNSEEN: Final = frozenset({"highWatermark", "timeoutMs"})
"""Fields that may be left out whatever they say."""
TOPIC_NAME: Final = "id:"
"""The beginning of the name that an id of a topic has in recordings."""
TOPIC_ERRORS: Final = (100, 3)
"""UNKNOWN_TOPIC_ID, and UNKNOWN_TOPIC_OR_PARTITION in a version that names topics."""
EARLIEST_PENDING_UPLOAD: Final = -6
"""A timestamp that ListOffsets takes since version 11."""
FIRST_WITH_PENDING_UPLOAD: Final = 11
REFUSED: Final = 35
"""UNSUPPORTED_VERSION."""


def version_to_ask(line: Json, spoken: Mapping[int, tuple[int, int]]) -> int:
    """The newest version in which a recorded request can be sent to a broker; the recorded one where there is none."""
    api, version, answer = str(line["api"]), int(line["version"]), line["answer"]
    oldest, newest = spoken.get(api_key(api), (0, -1))
    if answer == "closed" or (isinstance(answer, dict) and answer.get("errorCode") == REFUSED):
        return version
    lowest = OLDEST_ALIKE.get(api, version)
    if line["request"].get("transactionalId") is None:
        lowest = OLDEST_OUTSIDE_TRANSACTIONS.get(api, lowest)
    if newest >= version or newest < max(oldest, lowest) or not _fits(line, newest):
        return version
    return newest


def in_version(line: Json, version: int) -> Json:
    """A recorded request in an older version."""
    if version == line["version"]:
        return line
    return {**line, "version": version, "request": without_newer_fields(line["api"], version, _request(line))}


def with_ids(api: str, answer: Any) -> Any:
    """An answer in an older version, with the ids of topics that it names where a newer one has ids."""
    return _with_ids(answer) if api in NAMED_TOPICS_BEFORE else answer


def _with_ids(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_with_ids(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    found = {key: _with_ids(value) for key, value in answer.items()}
    if "name" in found and "topicId" not in found:
        found["topicId"] = f"{TOPIC_NAME}{found.pop('name')}"
    return found


def is_alike(recorded: Any, other: Any) -> bool:
    """Whether two fields of answers in different versions may differ so."""
    return "(absent)" in (recorded, other) or (recorded, other) == TOPIC_ERRORS


def _fits(line: Json, version: int) -> bool:
    """Whether an older version can say all that a request does."""
    request = line["request"]
    if line["api"] == "ConsumerGroupHeartbeat" and not request.get("memberId"):
        return False  # The broker draws the id of a member in version 0.
    if line["api"] == "WriteTxnMarkers":
        return all(marker.get("transactionVersion", 0) < 2 for marker in request["markers"])
    if line["api"] == "ListOffsets" and version < FIRST_WITH_PENDING_UPLOAD:
        wanted = (partition["timestamp"] for topic in request["topics"] for partition in topic["partitions"])
        return EARLIEST_PENDING_UPLOAD not in wanted
    return _says_as_much(_request(line), without_newer_fields(line["api"], version, _request(line)))


def _says_as_much(request: Any, older: Any) -> bool:
    if isinstance(request, dict):
        return all(
            _says_as_much(value, older[name]) if name in older else (name in UNSEEN or not value or value == -1)
            for name, value in request.items()
        )
    if isinstance(request, list):
        return all(_says_as_much(one, other) for one, other in zip(request, older, strict=True))
    return True


def _request(line: Json) -> Any:
    """The request of a line, with names of topics if an older version has them."""
    return _with_names(line["request"]) if line["api"] in NAMED_TOPICS_BEFORE else line["request"]


def _with_names(value: Any) -> Any:
    """A request with the names of topics in place of their ids."""
    if isinstance(value, list):
        return [_with_names(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_names(each) for key, each in value.items() if key != "topicId"}
    topic = value.get("topicId")
    if isinstance(topic, str) and topic.startswith(TOPIC_NAME):
        found["name"] = topic.removeprefix(TOPIC_NAME)
    elif topic is not None:
        found["topicId"] = topic
    return found
