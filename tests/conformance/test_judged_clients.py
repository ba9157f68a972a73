"""docs/conform-client.md has the verdicts on each client that ``make client-conformance`` judges, and the troubles."""

from __future__ import annotations

import re

import pytest

from conformance.clients.conform.judged import JUDGED, JudgedClient
from conformance.clients.conform.results import BEGIN, END, read_results, table
from rejoin.conform.clients.troubles import TROUBLES
from tests.conform.clients.mutations import MUTATIONS
from tests.docs.texts import TEXTS

TEXT = TEXTS["docs/conform-client.md"]
RESULTS = read_results()


def test_the_table_is_that_of_the_results() -> None:
    assert TEXT.split(BEGIN)[1].split(END)[0] == f"\n{table(RESULTS)}\n"


@pytest.mark.parametrize("client", JUDGED, ids=lambda client: str(client.title))
def test_each_client_was_judged_in_each_trouble(client: JudgedClient) -> None:
    judged = {each.trouble for each in RESULTS if each.client == client.title}
    assert judged == set(client.only or [each.name for each in TROUBLES])


def test_every_verdict_is_on_a_client_that_is_judged() -> None:
    assert {each.client for each in RESULTS} == {client.title for client in JUDGED}


def test_each_trouble_is_listed_with_what_a_client_must_do() -> None:
    rows = [f"| `{each.name}` | {each.done} | {each.expected} | {each.source} |" for each in TROUBLES]
    assert [line for line in TEXT.splitlines() if line in rows] == rows


def test_each_broken_rule_of_the_own_client_is_listed_as_found() -> None:
    listed = re.findall(r"^\| ([a-z ]+) \| `([a-z-]+)` \| [a-z]", TEXT, re.MULTILINE)
    assert listed == [(each.words, each.trouble) for each in MUTATIONS]
