"""The answer of ``rejoin why``: ten lines that say how the group is, what went on, why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.instants import instant
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.story import GroupStatus, GroupStory

DAY = 1_772_323_200_000
"""1 March 2026, UTC."""


def rebalance(number: int, at_ms: int, cause: str = "session-expiry", **values: Any) -> dict[str, Any]:
    return {
        "rebalance_id": f"r{number}",
        "prepared_at_ms": at_ms,
        "ended_at_ms": at_ms + 3_000,
        "unavailable_ms": 3_000,
        "outcome": "completed",
        "cause": cause,
        "cause_member_id": "m-1",
        "cause_group_instance_id": None,
        "cause_client_id": None,
        "client_reason": None,
        "generation_to": number,
        "moved": 2,
        **values,
    }


def finding(title: str, severity: str = "high", **values: Any) -> dict[str, Any]:
    return {
        "finding": "a-rule",
        "severity": severity,
        "title": title,
        "text": "All of it in many words. " * 20,
        "setting": "session.timeout.ms",
        "advice": "Set it to something longer. " * 20,
        "score": 90.0,
        "rebalances": [],
        "from_ms": None,
        "to_ms": None,
        **values,
    }


def story(**values: Any) -> GroupStory:
    given: dict[str, Any] = {
        "status": GroupStatus("orders-app", "Stable", DAY, 7, 6, "range", 120, 4_000),
        "rebalances": [rebalance(1, DAY), rebalance(2, DAY + 600_000, "join-new")],
        "findings": [finding("too short", rebalances=["r1"]), finding("range", "low"), finding("third", "low")],
        "names": {"m-1": "worker-1"},
    }
    return GroupStory(**{**given, **values})


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_on_ten_lines(width: int) -> None:
    lines = answer(story(), width)
    assert 6 <= len(lines) <= 10
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [60, 80, 120])
def test_long_names_cut_neither_the_cause_nor_what_to_do(width: int) -> None:
    title = ", ".join(f"{nth}f481c4c-6238-4463-843e-4cbdc29b6b4f" for nth in range(3)) + " fell silent"
    lines = answer(story(findings=[finding(title), finding("range", "low"), finding("third", "low")]), width)
    assert len(lines) <= 10
    assert "fell silent (90 consumer-seconds)" in " ".join(map(str.strip, lines))
    assert any(line.startswith("do") for line in lines)


def test_it_says_how_it_is_what_went_on_why_and_what_to_do() -> None:
    text = "\n".join(answer(story(), 120))
    assert (
        "orders-app: Stable since 2026-03-01 00:00:00, generation 7, 6 members, range, lag 120 records, about 4 s"
        in text
    )
    assert "2 rebalances on 1 March" in text
    assert "1 session expired, 1 joined" in text
    assert "last     2026-03-01 00:10:00 worker-1 joined; took 3 s (completed, generation 2, 2 moved)" in text
    assert "why      high: too short (1 of 2 rebalances, 90 consumer-seconds)" in text
    assert "do       session.timeout.ms: Set it to something longer." in text
    assert "also     low: range" in text


def test_an_instant_has_the_rebalance_that_went_on_then_and_what_explains_it() -> None:
    text = "\n".join(answer(story(), 120, DAY + 1_000))
    assert "then     2026-03-01 00:00:00 worker-1's session expired" in text
    assert "high: too short" in text
    assert "range" not in text.partition("why")[2]


def test_between_rebalances_the_one_before_is_named() -> None:
    assert "no rebalance at 2026-03-01 00:05:00; the one before: 2026-03-01 00:00:00" in " ".join(
        answer(story(), 120, DAY + 300_000)
    )


def test_before_the_first_rebalance_nothing_had_begun() -> None:
    assert "no rebalance had begun by 2026-02-28 23:59:59" in "\n".join(answer(story(), 120, DAY - 1_000))


def test_a_rebalance_that_goes_on() -> None:
    going_on = rebalance(3, DAY, outcome="open", ended_at_ms=None, unavailable_ms=None)
    assert "it goes on" in "\n".join(answer(story(rebalances=[going_on]), 120))


def test_without_findings_the_reason_of_the_client_is_given() -> None:
    row = rebalance(1, DAY, client_reason="the consumer is being closed")
    text = "\n".join(answer(story(rebalances=[row], findings=[]), 120))
    assert "no rule found a cause that a setting would change; the client said: the consumer is being closed" in text


def test_a_group_that_never_rebalanced() -> None:
    assert "nothing is wrong so far" in "\n".join(answer(story(rebalances=[], findings=[]), 120))


def test_names_do_not_reach_the_terminal_as_they_are() -> None:
    hostile = "\x1b[31mred\n<b>"
    shown = story(
        status=GroupStatus(hostile),
        names={"m-1": hostile},
        findings=[finding(hostile, text=hostile, advice=hostile, setting=None)],
    )
    assert "\x1b" not in "\n".join(answer(shown, 100))
    assert all(line.isprintable() for line in answer(shown, 100))


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("2026-03-01T00:00:05", DAY + 5_000),
        ("2026-03-01T01:00:05+01:00", DAY + 5_000),
        ("00:05", DAY + 300_000),
        ("0:05:01.5", DAY + 301_500),
        ("23:50", DAY - 600_000),
        (str(DAY), DAY),
        ("25", 25),
    ],
)
def test_instants(text: str, at_ms: int) -> None:
    assert instant(text, DAY + 7_200_000) == at_ms


@pytest.mark.parametrize(("text", "at_ms"), [("0:10:00", 600_000), ("1d 0:00:01", 86_401_000)])
def test_instants_of_a_simulation_count_from_its_start(text: str, at_ms: int) -> None:
    assert instant(text, 900_000) == at_ms


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "1:2:3:4"])
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match="expected 2026-03-01T14:02:00Z"):
        instant(text, DAY)


def test_what_befell_many_groups_comes_behind_what_explains_more_of_this_one() -> None:
    outage = finding("Broker 1 was away", groups=["orders-app", "mail"], rebalances=["r2"])
    many = [rebalance(number, DAY + number * 60_000) for number in range(5)]
    text = "\n".join(answer(story(rebalances=many, findings=[outage, finding("flaps", rebalances=["r1", "r3"])]), 120))
    assert "why      high: flaps" in text
    assert "also     high: Broker 1 was away" in text


def test_at_an_instant_the_cause_comes_before_what_made_it_cost_more() -> None:
    eager = finding("range stopped every consumer", finding="eager-assignor", rebalances=["r1", "r2"])
    flaps = finding("flaps", "medium", finding="flapping-member", rebalances=["r1"])
    text = "\n".join(answer(story(findings=[eager, flaps]), 120, DAY + 1_000))
    assert "why      medium: flaps" in text
    assert "also     high: range stopped every consumer" in text


def test_an_empty_group_with_lag_has_no_reader() -> None:
    empty = story(status=GroupStatus("orders-app", "Empty", DAY, 7, 0, lag=120), findings=[])
    assert "no member is in the group to read what lags" in "\n".join(answer(empty, 120))


def test_a_reason_that_says_nothing_is_left_out() -> None:
    row = rebalance(1, DAY, client_reason="need to re-join with the given member-id: m-1")
    assert "the client said" not in "\n".join(answer(story(rebalances=[row], findings=[]), 120))
