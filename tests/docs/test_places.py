"""CONTRIBUTING.md lists the places of each kind of change; a test that it names fails where a place is forgotten."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType, SimpleNamespace
from typing import Any, Final, get_args

import pytest
from pydantic import Field

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.journal.events import client as consumer_events
from rejoin.journal.events.base import Event
from rejoin.journal.kafka_logs.clients.names import JAVA
from rejoin.journal.kafka_logs.template import Template
from rejoin.pipeline.findings import rules
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.rules import RULES, restarts
from rejoin.pipeline.reading.client_logs import families
from rejoin.pipeline.vocabulary import TASK_RESTORED, TASKS_ASSIGNED, TASKS_CORRUPTED, TASKS_READY, TOPIC_UNAVAILABLE
from rejoin.protocol import registry
from rejoin.protocol.brokers.releases import newest_versions
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import BY_KEY, BY_NAME, HEARTBEAT
from rejoin.simulation.scenario import runner
from rejoin.simulation.scenario.actions import KINDS, ScheduledAction
from rejoin.simulation.scenario.fields import Part
from tests.conformance import test_what_is_covered
from tests.coordinator.service import test_new_api
from tests.coordinator.service.http import test_rpc
from tests.coordinator.service.refusals import test_refused_requests
from tests.docs import test_fault_fields, test_settings
from tests.docs.texts import TEXTS
from tests.journal import test_renames
from tests.paths import ROOT
from tests.pipeline.findings import test_findings
from tests.pipeline.findings.rules import test_documented
from tests.pipeline.reading.client_logs import test_examples
from tests.protocol import test_definitions
from tests.protocol.brokers import test_releases
from tests.simulation import test_reading

PLACES: Final = TEXTS["CONTRIBUTING.md"].partition("## Where a change goes")[2].partition("\n## ")[0]
SECTIONS: Final = {part.partition("\n")[0]: part for part in PLACES.split("\n### ")[1:]}
LABORATORY: Final = ROOT / "pages" / "laboratory"


# --- tests of places that have no better home


PASSED_OVER: Final = {"remark", "join_failed"}
"""Kinds of lines that are known and say nothing more."""


def unread_kinds(lines: Iterable[Template]) -> set[str]:
    """Kinds of lines that are no event of a consumer and that no reader asks for."""
    of_logs = (TOPIC_UNAVAILABLE, TASK_RESTORED, TASKS_ASSIGNED, TASKS_READY, TASKS_CORRUPTED)
    events = {*(event.name for event in consumer_events.EVENT_TYPES), *of_logs}
    readers = "\n".join(path.read_text() for path in (ROOT / "pipeline" / "reading" / "client_logs").rglob("*.py"))
    return {line.kind for line in lines if line.kind not in events and f'"{line.kind}"' not in readers} - PASSED_OVER


@pytest.mark.parametrize("library", families.FAMILIES)
def test_each_line_of_a_client_has_a_kind_that_is_read(library: str) -> None:
    assert unread_kinds(line for line, _ in families.known_by_text(library)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_each_action_is_carried_out(kind: str) -> None:
    action = get_args(ScheduledAction.model_fields[kind].annotation)[0]
    assert re.search(rf"\b{action.__name__}: (self\.|partial\()", inspect.getsource(runner.ActionRunner))


def scripts() -> dict[str, str]:
    return {path.name: path.read_text() for path in LABORATORY.glob("*.js")}


def imported(text: str) -> set[str]:
    return set(re.findall(r"""(?:from|import|import\() ?["']\./([\w-]+\.js)["']""", text))


def unloaded(texts: dict[str, str], page: str) -> set[str]:
    """Scripts that the page neither loads nor imports."""
    waiting = [name for name in re.findall(r'src="assets/([\w-]+\.js)"', page) if name in texts]
    for name in waiting:
        waiting += sorted((imported(texts[name]) & texts.keys()) - set(waiting))
    return texts.keys() - set(waiting)


def unknown_ids(texts: dict[str, str], page: str) -> set[str]:
    """Ids that scripts look up and no element has."""
    wanted = {name for text in texts.values() for name in re.findall(r"""(?<![\w.])\$\(["']([\w-]+)["']\)""", text)}
    made = {name for text in texts.values() for name in re.findall(r"""\bid ?= ?["']([\w-]+)["']""", text)}
    return wanted - made - set(re.findall(r'\bid="([\w-]+)"', page))


def test_each_script_of_the_page_is_loaded() -> None:
    assert unloaded(scripts(), (LABORATORY / "page.html").read_text()) == set()


def test_each_element_that_a_script_looks_up_is_on_the_page() -> None:
    assert unknown_ids(scripts(), (LABORATORY / "page.html").read_text()) == set()


def test_each_rule_is_in_the_list() -> None:
    """A rule is a public generator of findings from the causes of one group."""
    found = {
        rule
        for module in rule_modules()
        for name, rule in vars(module).items()
        if inspect.isfunction(rule)
        and rule.__module__ == module.__name__
        and not name.startswith("_")
        and list(inspect.signature(rule).parameters) == ["causes"]
        and inspect.signature(rule).return_annotation == "Iterator[Finding]"
    }
    assert {rule.__name__ for rule in found} - {rule.__name__ for rule in RULES} == set()


def rule_modules() -> list[ModuleType]:
    return [import_module(f"{rules.__name__}.{module.name}") for module in iter_modules(rules.__path__)]


# --- a thing of each kind, added in memory, and the tests that miss its places

Missed = dict[str, Callable[[], object]]


def of_an_api(monkeypatch: pytest.MonkeyPatch) -> Missed:
    api = registry.Api("CountMembers", 999, 0, 1, 1, test_new_api.__name__, "/v1/count-members")
    monkeypatch.setitem(BY_KEY, api.key, api)
    monkeypatch.setitem(BY_NAME, api.name, api)
    node = SimpleNamespace(request=lambda *_: None)

    def http() -> None:
        test_rpc.test_every_api_answers_its_own_message_at_its_path(node, api).send(None)  # type: ignore[arg-type]

    def too_early() -> None:
        monkeypatch.setattr(
            test_releases, "newest_versions", lambda release: {**newest_versions(release), HEARTBEAT.key: 5}
        )
        test_releases.test_each_version_has_the_release_that_kafka_python_knows_it_from("3.9")

    return {
        "test_fields_are_kafkas": (
            lambda: inspect.unwrap(test_definitions.test_fields_are_kafkas)(api, "Kafka 4.4", "Request")
        ),
        "test_every_api_has_a_handler_and_a_rule": test_new_api.test_every_api_has_a_handler_and_a_rule,
        "test_the_newest_release_is_offered_whole": test_releases.test_the_newest_release_is_offered_whole,
        "test_each_version_has_the_release_that_kafka_python_knows_it_from": too_early,
        "test_every_api_answers_its_own_message_at_its_path": http,
        "test_every_version_that_both_speak_was_sent_and_answered": (
            test_what_is_covered.test_every_version_that_both_speak_was_sent_and_answered
        ),
        "test_coverage_names_every_api_that_is_offered_and_every_other_one_of_kafka": (
            test_what_is_covered.test_coverage_names_every_api_that_is_offered_and_every_other_one_of_kafka
        ),
    }


class NewError:
    """An error code that is in no list."""

    retriable = False


def of_an_error_code(monkeypatch: pytest.MonkeyPatch) -> Missed:
    monkeypatch.setattr(test_refused_requests, "ErrorCode", [*ErrorCode, NewError()])
    name = "test_each_error_is_a_refusal_or_retriable_or_belongs_to_ordinary_life"
    return {name: getattr(test_refused_requests, name)}


class MoreSettings(Settings):
    """With one more."""

    emulator_more: int = Field(default=1, alias="emulator.more", description="More.")


def of_a_setting(_: pytest.MonkeyPatch) -> Missed:
    request: Any = SimpleNamespace(config=SimpleNamespace(getoption=lambda _: False))
    check = test_settings.test_the_table_is_that_of_the_model
    return {"test_the_table_is_that_of_the_model": lambda: check("## Coordinator", MoreSettings, request)}


class MoreHappened(Event):
    """An event with a field that has no meaning yet."""

    never_explained: int


def of_an_event(monkeypatch: pytest.MonkeyPatch) -> Missed:
    monkeypatch.setitem(test_renames.EVENTS, "more_happened", MoreHappened)
    name = "test_each_field_has_its_meaning_and_each_meaning_a_field"
    return {name: getattr(test_renames, name)}


def of_a_log_line(monkeypatch: pytest.MonkeyPatch) -> Missed:
    more = (Template("never_read", "Never read"), re.compile("Never read"))
    monkeypatch.setitem(families._LINES, JAVA, [*families.known_by_text(JAVA), more])
    checks = (
        test_each_line_of_a_client_has_a_kind_that_is_read,
        test_examples.test_each_line_of_a_client_has_an_example,
    )
    return {check.__name__: partial(check, JAVA) for check in checks}


class MoreDeploys(Part):
    """An action that nothing carries out."""


class MoreActions(ScheduledAction):
    """With one more."""

    more: MoreDeploys | None = None


def of_an_action(monkeypatch: pytest.MonkeyPatch) -> Missed:
    monkeypatch.setitem(globals(), "ScheduledAction", MoreActions)
    monkeypatch.setattr(test_reading, "ScheduledAction", MoreActions)
    documented = test_reading.test_the_page_names_every_key_of_an_action
    return {
        "test_each_action_is_carried_out": lambda: test_each_action_is_carried_out("more"),
        "test_the_page_names_every_key_of_an_action": lambda: documented("more"),
    }


def more_trouble(causes: Any) -> Iterator[Finding]:
    yield from causes


def of_a_finding(monkeypatch: pytest.MonkeyPatch) -> Missed:
    monkeypatch.setattr(more_trouble, "__module__", restarts.__name__)
    monkeypatch.setattr(restarts, "more_trouble", more_trouble, raising=False)
    monkeypatch.setattr(test_findings, "NAMES", (*rules.NAMES, "more-trouble"))
    return {
        "test_each_rule_is_in_the_list": test_each_rule_is_in_the_list,
        "test_every_rule_is_among_them": test_findings.test_every_rule_is_among_them,
        "test_each_finding_is_explained": partial(test_documented.test_each_finding_is_explained, "more-trouble"),
    }


class MoreFaults(FaultRule):
    """With one more field."""

    more: int = 0


def of_a_fault(monkeypatch: pytest.MonkeyPatch) -> Missed:
    for place in test_fault_fields.PLACES:
        with pytest.raises(AssertionError):
            test_fault_fields.check_place(place, MoreFaults, rewrite=False)
    request: Any = SimpleNamespace(config=SimpleNamespace(getoption=lambda _: False))
    check = test_fault_fields.test_the_fields_are_those_of_the_rule
    monkeypatch.setattr(test_fault_fields, "FaultRule", MoreFaults)
    return {check.__name__: lambda: check("docs/testing.md", request)}


def of_a_panel(monkeypatch: pytest.MonkeyPatch) -> Missed:
    more = {**scripts(), "more.js": '$("never-made").hidden = true;'}
    monkeypatch.setitem(globals(), "scripts", lambda: more)
    return {
        test.__name__: test
        for test in (test_each_script_of_the_page_is_loaded, test_each_element_that_a_script_looks_up_is_on_the_page)
    }


KINDS_OF_CHANGE: Final[dict[str, Callable[[pytest.MonkeyPatch], Missed]]] = {
    "An API": of_an_api,
    "An error code": of_an_error_code,
    "A setting": of_a_setting,
    "An event": of_an_event,
    "A finding": of_a_finding,
    "A log line of a client": of_a_log_line,
    "A scenario action": of_an_action,
    "A field of a fault": of_a_fault,
    "A panel of the laboratory's page": of_a_panel,
}
CHECKED_OTHERWISE: Final = {"test_error_codes_are_kafkas"}
"""Tests that compare with a list of Kafka's, which nothing can be added to."""


def checks_of(section: str) -> Iterator[tuple[str, str]]:
    """Files and names of tests in the last column of a section's table."""
    for row in re.findall(r"^\| `.*\|$", section, re.MULTILINE):
        yield from re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row.split(" | ")[-1])


def test_every_kind_of_change_is_tried() -> None:
    assert KINDS_OF_CHANGE.keys() == SECTIONS.keys()


@pytest.mark.parametrize("kind", KINDS_OF_CHANGE)
def test_a_forgotten_place_fails_the_test_that_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = list(checks_of(SECTIONS[kind]))
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(), f"CONTRIBUTING.md: {path} has no {name}"
    missed = KINDS_OF_CHANGE[kind](monkeypatch)
    assert {name for _, name in named} - CHECKED_OTHERWISE == missed.keys()
    for check in missed.values():
        with pytest.raises((AssertionError, KeyError, StopIteration)):
            check()


@pytest.mark.parametrize("kind", SECTIONS)
def test_every_place_exists(kind: str) -> None:
    places = re.findall(r"^\| `([\w/.-]+)` \|", SECTIONS[kind], re.MULTILINE)
    assert len(places) >= 1
    assert [place for place in places if not (ROOT / place).exists()] == []
