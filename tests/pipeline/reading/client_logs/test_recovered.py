"""What was done to real consumers is found in their logs."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.recovered.from_client_logs import ENOUGH, GOLDEN, SETS, Recovered, read, recovered

SAYS_LITTLE = {"rdkafka"}
"""Groups whose clients log by default too little to be found without the broker's log."""


@cache
def found_in(name: str, how: str) -> list[Recovered]:
    return recovered(GOLDEN / name, with_broker=how != "alone")


@pytest.mark.parametrize("how", ["alone", "with the broker's log"])
@pytest.mark.parametrize("name", SETS)
def test_what_was_done_is_found_with_its_member_and_cause(name: str, how: str) -> None:
    found = found_in(name, how)
    assert found
    enough = [each for each in found if each.group not in SAYS_LITTLE or how != "alone"]
    assert {each.group: each.missed for each in enough if each.share < ENOUGH} == {}


@pytest.mark.parametrize("how", ["alone", "with the broker's log"])
@pytest.mark.parametrize("name", SETS)
def test_nothing_is_found_that_was_not_done_and_every_line_is_read(name: str, how: str) -> None:
    found = found_in(name, how)
    assert {each.group: each.invented for each in found if each.invented} == {}
    assert {each.group: each.unread for each in found if each.unread} == {}


@pytest.mark.parametrize(
    ("group", "errors"),
    [
        ("java/java", {"UNKNOWN_MEMBER_ID"}),
        ("python/aiokafka", {"UNKNOWN_MEMBER_ID"}),
        ("rdkafka/rdkafka-debug", {"ILLEGAL_GENERATION"}),
        ("others/kafkajs", {"UNKNOWN_MEMBER_ID"}),
    ],
)
def test_commits_that_were_refused_have_their_member_and_the_error_of_kafka(group: str, errors: set[str]) -> None:
    events, _ = read(sorted((GOLDEN / group).glob("*.gz")))
    refused = [each for each in events if each["event"] == "commit_refused"]
    assert {each["error"] for each in refused} == errors
    assert all(each["source"] == "client-log" and each["member_id"] for each in refused)
