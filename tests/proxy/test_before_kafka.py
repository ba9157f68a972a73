"""docs/proxy.md has what clients did on a real Kafka, directly and through the proxy: it makes no difference."""

from __future__ import annotations

import pytest

from conformance.before_kafka.clients import PLAYS
from conformance.before_kafka.results import BEGIN, END, ProxiedResult, read, table
from conformance.clients.programs import CLIENTS
from tests.docs.texts import TEXTS

RESULTS = {each.name: each for each in read()}


def test_the_table_is_that_of_the_results() -> None:
    written = TEXTS["docs/proxy.md"].split(BEGIN)[1].split(END)[0]
    assert written == f"\n{table(list(RESULTS.values()))}\n"


@pytest.mark.parametrize("result", RESULTS.values(), ids=list(RESULTS))
def test_each_step_ended_through_the_proxy_as_without_it(result: ProxiedResult) -> None:
    assert result.is_alike, list(result.lines())
    assert not all(result.behind.values()), "some steps pass"


@pytest.mark.parametrize("client", [each.name for each in CLIENTS if each.name in RESULTS])
def test_clients_were_played_in_the_versions_of_now(client: str) -> None:
    assert RESULTS[client].version == PLAYS[client].version


def test_a_step_that_only_fails_through_the_proxy_is_a_difference() -> None:
    result = ProxiedResult("c", "1", {"a": "", "b": "lost", "c": ""}, {"a": "", "b": "lost too", "c": "closed"})
    assert not result.is_alike
    assert [line for line in result.lines() if line.startswith("c:")] == ["c: directly passed; behind the proxy closed"]
    assert not ProxiedResult("c", "1", {"a": ""}, {}).is_alike
    assert not ProxiedResult("c", "1", {"a": ""}, {"a": ""}, ["refused: 1"]).is_alike
    assert ProxiedResult("c", "1", {"a": "", "b": "lost"}, {"a": "", "b": "lost too"}).is_alike
    assert ProxiedResult("c", "1", {}, {"a": ""}).is_alike
    assert ProxiedResult("c", "1", {"a": "lost"}, {"a": ""}).is_alike
    assert not ProxiedResult("c", "1", {}, {"a": "lost"}).is_alike
