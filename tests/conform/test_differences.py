"""Differences that say nothing about a broker: drawn names and ids, a busy machine, topics that it makes itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rejoin.conform.applicability import BOUND_TO_TIME, BrokerFeatures, why_not
from rejoin.conform.comparison.compare import Difference
from rejoin.conform.comparison.exchanges import NamedValues
from rejoin.conform.comparison.outcomes import ScriptOutcome, classified
from rejoin.conform.judging import without_internal
from rejoin.conform.player.prefix import RunPrefix
from rejoin.conform.recordings.reading import SETS, read_set
from rejoin.conform.reports.page import LONGEST, MOST_ROWS, page


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("tx-.*", True),
        ("^tx-.*$", True),
        ("(?i)TX-.*", True),
        ("a|tx-1", True),
        ("(?P<n>t).*", True),
        (".*", True),
        ("tx", False),
        ("a|b", False),
    ],
)
def test_a_pattern_of_ids_finds_them_behind_the_prefix(pattern: str, matches: bool) -> None:
    sent = RunPrefix("conform-12-").outgoing("ListTransactions", {"transactionalIdPattern": pattern})
    found = re.fullmatch(sent["transactionalIdPattern"], "conform-12-tx-1")
    assert (found is not None) is matches
    assert re.fullmatch(sent["transactionalIdPattern"], "tx-1") is None


@pytest.mark.parametrize("pattern", ["[", "*", "tx-("])
def test_a_pattern_that_is_wrong_stays_wrong(pattern: str) -> None:
    sent = RunPrefix("conform-12-").outgoing("ListTransactions", {"transactionalIdPattern": pattern})
    with pytest.raises(re.error):
        re.compile(sent["transactionalIdPattern"])


def test_the_first_producers_id_may_be_0() -> None:
    values = NamedValues(0, {})
    values.learn({"producerId": "pid-1"}, {"producerId": 0})
    ours = values.named({"producerId": 0})
    assert list(values.differences({"producerId": "pid-1"}, ours)) == []
    assert list(values.differences({"producerId": 0}, ours)) == []
    values.learn({"producerId": "pid-2"}, {"producerId": 7})
    assert list(values.differences({"producerId": 0}, values.named({"producerId": 7}))) != []


def test_a_time_in_an_answer_is_counted_from_the_beginning() -> None:
    (one,) = NamedValues(1_000, {}).differences({"lastTimestamp": "T+10"}, {"lastTimestamp": 5_000})
    found = Difference(3, "DescribeProducers", 0, one.path, one.recorded, one.other)
    assert (one.other, classified([found])[0].kind) == ("T+4000", "time")


def test_a_late_script_is_doubtful_only_where_it_differs() -> None:
    error = classified([Difference(1, "Heartbeat", 4, "errorCode", 0, 25)])
    time = classified([Difference(1, "Heartbeat", 4, "at", 0, 2_500)])
    outcome = ScriptOutcome("groups", "a")
    assert not replace(outcome, is_late=True).is_doubtful
    assert replace(outcome, differences=time).is_doubtful
    assert not replace(outcome, differences=error).is_doubtful
    assert replace(outcome, differences=error, is_late=True).is_doubtful


def test_groups_may_share_a_partition_of_the_internal_topic() -> None:
    one, two = ({"name": "__consumer_offsets", "partitions": found} for found in ([3], [1, 3]))
    assert without_internal([one]) == without_internal([two])
    assert without_internal([one]) != without_internal([{**one, "partitions": []}])


def test_each_script_that_is_bound_to_time_exists_and_is_not_played() -> None:
    names = {script.full_name: script for of_set in SETS for script in read_set(of_set)}
    for name, reason in BOUND_TO_TIME.items():
        assert why_not(names[name], BrokerFeatures({})) == reason


def test_a_page_is_bounded() -> None:
    many = [Difference(1, "Fetch", 18, f"records.{n}", "A" * 10_000, "B" * 10_000, "C" * 10_000) for n in range(500)]
    text = page([ScriptOutcome("records", "a", classified(many))], "localhost", "4.4.0")
    assert f"and {500 - MOST_ROWS} more" in text
    assert text.count("C" * LONGEST) == 1
    assert len(text) < 100_000
