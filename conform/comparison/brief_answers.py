"""Answers in the brief form of the recordings of share groups and streams groups.

Fetched batches are their first and last offset and their kind, dead letters are the text of their records, and of an
assignment the number of partitions counts: which ones a member gets follows from the ids of topics that a broker drew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rejoin.conform.player.messages import Json

LEFT_OUT: Final = frozenset(
    {"errorMessage", "acknowledgeErrorMessage", "statusDetail", "throttleTimeMs"}
    | {"nodeEndpoints", "host", "port", "clusterId"}
)
"""Fields that differ by nature, or that the recordings do not have."""
OF_PRODUCE: Final = ("index", "errorCode", "baseOffset")
LETTERS: Final = "letters"
"""Field of a recorded Fetch that has the records of a topic of dead letters alone."""
VARIES: Final = "varies"
"""Mark of a line whose answer was another one in a second recording: error codes alone are compared."""
UNTIMED: Final = frozenset({"DescribeShareGroupOffsets"})
"""Requests for which a coordinator asks others, on connections that Kafka opens when it needs them first."""
TRANSACTIONAL, CONTROL = 1 << 4, 1 << 5
"""Bits of the attributes of a batch."""


def brief(line: Json, answer: Any, prefix: str = "") -> Any:
    """An answer to a recorded line, with names in place of ids; ``prefix`` is that of names within dead letters."""
    if line["api"] == "Fetch" and isinstance(line["answer"], dict) and LETTERS in line["answer"]:
        return {LETTERS: _letters(answer, prefix)}
    if line["api"] == "Produce":
        return {"responses": [_of_produce(topic) for topic in answer["responses"]]}
    return _brief(answer)


def only_codes(answer: Json) -> Json:
    """The error codes of an answer, and of each group in it."""
    found = {name: value for name, value in answer.items() if name in ("errorCode", "groupId")}
    if "groups" in answer:
        found["groups"] = [only_codes(group) for group in answer["groups"]]
    return found


def _of_produce(topic: Json) -> Json:
    partitions = [{name: each[name] for name in OF_PRODUCE} for each in topic["partitionResponses"]]
    return {"name": topic["name"], "partitionResponses": partitions}


def _brief(value: Any) -> Any:
    if isinstance(value, list):
        return [_brief(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"topicId", "partitions"} and not any(isinstance(each, dict) for each in value["partitions"]):
        return value | {"partitions": len(value["partitions"])}
    found = {}
    for name, each in value.items():
        if name in LEFT_OUT:
            continue
        batches = each.get("batches") if name == "records" and isinstance(each, dict) else None
        found[name] = _brief(each) if batches is None else [_batch(batch) for batch in batches]
    return found


def _batch(described: Mapping[str, Any]) -> list[Any]:
    attributes, base = described["attributes"], described["baseOffset"]
    kind = "control" if attributes & CONTROL else "transactional" if attributes & TRANSACTIONAL else "plain"
    return [base, base + described["lastOffsetDelta"], kind]


def _letters(answer: Json, prefix: str) -> list[Json]:
    partitions = (each for topic in answer["responses"] for each in topic["partitions"])
    batches = (batch for each in partitions for batch in (each["records"] or {"batches": ()})["batches"])
    return [
        {
            "offset": batch["baseOffset"] + record["offsetDelta"],
            "key": record["key"],
            "value": record["value"],
            "headers": [[header["key"], (header["value"] or "").removeprefix(prefix)] for header in record["headers"]],
        }
        for batch in batches
        for record in batch["records"]
    ]
