"""Every error code of a response is counted, wherever it stands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rejoin.coordinator.service.refusals.error_codes import error_counter
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import APIS, BY_NAME, Api
from tests.conformance.golden import GOLDEN, PATHS

ALL = frozenset(ErrorCode)


def codes_in(body: Any) -> Iterator[ErrorCode]:
    """The error codes in JSON, but for the one of CreateTopics that is about the topic's settings alone."""
    if isinstance(body, list):
        for each in body:
            yield from codes_in(each)
    elif isinstance(body, dict):
        for name, value in body.items():
            if name in {"errorCode", "partitionErrorCode"}:
                yield ErrorCode(value)
            else:
                yield from codes_in(value)


def exchanges() -> Iterator[tuple[Api, int, dict[str, Any]]]:
    """What a real broker answered in the recordings."""
    for path in PATHS:
        asked: dict[int, tuple[Api, int]] = {}
        for line in map(json.loads, path.read_text().splitlines()):
            if line.get("api") in BY_NAME:
                asked[line["n"]] = BY_NAME[line["api"]], line["version"]
            elif "response" in line and line["n"] in asked and isinstance(line["response"], dict):
                yield *asked.pop(line["n"]), line["response"]


def test_those_that_a_broker_answered_are_all_counted() -> None:
    assert GOLDEN.is_dir()
    seen: Counter[str] = Counter()
    for api, version, body in exchanges():
        response = api.response.from_json(json.dumps(body))
        counts: dict[ErrorCode, int] = {}
        found = error_counter(api.response, version, ALL)(response, counts)
        expected = Counter(code for code in codes_in(json.loads(response.to_json(version))) if code)
        assert counts == expected, f"{api.name} v{version}: {body}"
        assert (found or {}).keys() == expected.keys()
        seen[api.name] += sum(expected.values())
    assert len([api for api, errors in seen.items() if errors]) > 20, "the recordings have errors of most APIs"


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_there_is_a_counter_of_every_version(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        counts: dict[ErrorCode, int] = {}
        assert error_counter(api.response, version, ALL)(api.response(), counts) is None
        assert counts == {}


def test_the_first_of_each_is_found_with_all_that_it_stands_in() -> None:
    produce = BY_NAME["Produce"]
    partitions = [
        {"index": 0},
        {"index": 1, "errorCode": 10},
        {"index": 2, "errorCode": 2},
        {"index": 3, "errorCode": 2},
    ]
    body = {"responses": [{"name": "a"}, {"name": "b", "partitionResponses": partitions}]}
    response: Any = produce.response.from_json(json.dumps(body))
    counts = {ErrorCode.CORRUPT_MESSAGE: 5}
    found = error_counter(produce.response, 9, frozenset({ErrorCode.CORRUPT_MESSAGE}))(response, counts)
    assert counts == {ErrorCode.CORRUPT_MESSAGE: 7, ErrorCode.MESSAGE_TOO_LARGE: 1}
    topic = response.responses[1]
    assert found == {ErrorCode.CORRUPT_MESSAGE: (response, topic, topic.partition_responses[2])}
