"""docs/clients.md has the results of each client that ``make clients`` runs, in its version, for each step."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from conformance.clients import burrow, consumer_groups, logins, share_groups, streams_groups, tools
from conformance.clients.admin import calls
from conformance.clients.node import IN_MEMORY, KINDS
from conformance.clients.programs import CLIENTS, PYTHON, ClientProgram
from conformance.clients.results import BEGIN, END, EXAMPLE, STEPS, read_results, tables
from conformance.clients.streams_groups.lives import STEPS as STREAMS_STEPS
from tests.docs.texts import TEXTS
from tests.real_clients.client import Client as RealClient
from tests.real_clients.libraries import LIBRARIES
from tests.real_clients.steps import STEPS as LIFE

RESULTS = read_results()
IN_ONE_TABLE = [result for result in RESULTS if result.node == IN_MEMORY]


def test_the_tables_are_those_of_the_results() -> None:
    written = TEXTS["docs/clients.md"].split(BEGIN)[1].split(END)[0]
    assert written == f"\n{tables(RESULTS)}\n"


def test_the_table_of_logins_is_that_of_its_results() -> None:
    written = TEXTS["docs/clients.md"].split(logins.TABLE.begin)[1].split(logins.TABLE.end)[0]
    assert written == f"\n{logins.TABLE.text()}\n"


def test_the_table_of_consumer_groups_is_that_of_its_results() -> None:
    written = TEXTS["docs/clients.md"].split(consumer_groups.TABLE.begin)[1].split(consumer_groups.TABLE.end)[0]
    assert written == f"\n{consumer_groups.TABLE.text()}\n"


def test_the_table_of_share_groups_is_that_of_its_results() -> None:
    written = TEXTS["docs/clients.md"].split(share_groups.TABLE.begin)[1].split(share_groups.TABLE.end)[0]
    assert written == f"\n{share_groups.TABLE.text()}\n"


def test_the_table_of_administration_is_that_of_its_results() -> None:
    written = TEXTS["docs/clients.md"].split(calls.TABLE.begin)[1].split(calls.TABLE.end)[0]
    assert written == f"\n{calls.TABLE.text()}\n"


@pytest.mark.parametrize("client", list(calls.PROGRAMS))
def test_each_administrator_made_its_calls(client: str) -> None:
    (found,) = (each for each in calls.TABLE.read() if each["client"] == client)
    (version_now,) = (each.version for each in CLIENTS if each.name == client)
    assert found["version"] == version_now
    assert found["problems"].keys() <= set(calls.CALLS)
    equal = [call for call, problem in found["problems"].items() if not problem]
    assert {"create ACLs", "describe ACLs", "delete ACLs", "describe users of SCRAM"} <= set(equal)


def test_an_application_of_kafka_streams_passed_each_step() -> None:
    (found,) = streams_groups.TABLE.read()
    assert found["problems"] == dict.fromkeys(STREAMS_STEPS, "")
    written = TEXTS["docs/clients.md"].split(streams_groups.TABLE.begin)[1].split(streams_groups.TABLE.end)[0]
    assert written == f"\n{streams_groups.TABLE.text()}\n"


@pytest.mark.parametrize("client", list(share_groups.PROGRAMS))
def test_each_client_with_a_share_consumer_went_through_its_steps(client: str) -> None:
    (found,) = (each for each in share_groups.TABLE.read() if each["client"] == client)
    (version_now,) = (each.version for each in CLIENTS if each.name == client)
    assert found["version"] == version_now
    lacks = share_groups.LACKS.get(client, ())
    assert found["problems"] == {step: "" for step in share_groups.STEPS if step not in lacks}


@pytest.mark.parametrize("client", list(consumer_groups.PROGRAMS))
def test_each_client_of_the_consumer_protocol_went_through_its_steps(client: str) -> None:
    (found,) = (each for each in consumer_groups.TABLE.read() if each["client"] == client)
    (version_now,) = (each.version for each in CLIENTS if each.name == client)
    assert found["version"] == version_now
    lacks = consumer_groups.LACKS.get(client, ())
    assert found["problems"] == {step: "" for step in consumer_groups.STEPS if step not in lacks}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: str(each.name))
def test_each_client_logged_in_by_each_mechanism(client: ClientProgram) -> None:
    (found,) = (each for each in logins.TABLE.read() if each["client"] == client.name)
    assert found["version"] == client.version
    assert found["problems"] == dict.fromkeys(logins.LOGINS, "")


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each.name not in PYTHON], ids=lambda each: str(each.name)
)
def test_each_client_went_through_every_step_that_it_has(client: ClientProgram) -> None:
    mine = [result for result in IN_ONE_TABLE if result.client == client.name]
    wanted = [step for step in STEPS if step not in client.lacks] + [EXAMPLE] * (client.example is not None)
    assert [result.step for result in mine] == wanted
    assert {result.version for result in mine} == {client.version}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: str(library.name))
def test_the_steps_of_the_python_clients_are_those_of_their_tests(library: type[RealClient]) -> None:
    mine = [result for result in IN_ONE_TABLE if result.client == library.name]
    assert {result.step for result in mine} <= {*LIFE, EXAMPLE} - library.without
    assert {result.version for result in mine} == {version(library.name)}


def test_each_tool_was_run() -> None:
    mine = [result for result in IN_ONE_TABLE if result.client == tools.NAME]
    assert [result.step for result in mine] == [step.name for step in tools.STEPS]
    assert {result.version for result in mine} == {tools.VERSION}


@pytest.mark.parametrize("kind", [IN_MEMORY, "data", "postgres"])
def test_burrow_knew_the_lag_beside_each_kind_of_node(kind: str) -> None:
    mine = [result for result in RESULTS if (result.client, result.node) == (burrow.NAME, kind)]
    assert [(result.step, result.version, result.passed) for result in mine] == [(burrow.STEP, burrow.VERSION, True)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != IN_MEMORY])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: str(library.name))
def test_the_python_clients_were_run_against_every_kind_of_node(library: type[RealClient], kind: str) -> None:
    mine = [result for result in RESULTS if (result.client, result.node) == (library.name, kind)]
    assert [result.step for result in mine] == [step for step in LIFE if step not in library.without]


def test_only_what_failed_has_a_problem() -> None:
    assert [result for result in RESULTS if result.passed is bool(result.problem)] == []
