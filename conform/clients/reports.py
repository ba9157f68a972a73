"""The verdicts as a table, and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rejoin.conform.clients.observed import ClientOutcome
from rejoin.conform.clients.playing import PlayedTrouble
from rejoin.conform.clients.trouble import ClientTrouble

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML has no way to write."""


def listed(troubles: Sequence[ClientTrouble]) -> str:
    """The troubles, each with what the broker does, what a client must do, and the source."""
    return "\n".join(
        f"{each.name}\n    broker: {each.done}\n    client: {each.expected}\n    source: {each.source}"
        for each in troubles
    )


def row(played: PlayedTrouble, width: int) -> str:
    """A row of the table, with the evidence of a failure below it."""
    verdict = played.verdict
    said = verdict.reason or (str(played.course) if verdict.outcome is ClientOutcome.PASSED and played.course else "")
    head = f"{played.trouble.name.ljust(width)}  {verdict.outcome.ljust(14)}  {said}".rstrip()
    return "\n".join([head, *(f"    {each}" for each in _explained(played))])


def summary(played: Sequence[PlayedTrouble]) -> str:
    """How many ended how."""
    counts = {outcome: sum(each.verdict.outcome is outcome for each in played) for outcome in ClientOutcome}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)


def junit(played: Sequence[PlayedTrouble], command: str) -> bytes:
    """The document: one suite, a case for each trouble."""
    suite = Element("testsuite", name=_clean(f"rejoin conform-client {command}"))
    outcomes = [each.verdict.outcome for each in played]
    counts = {
        "tests": len(played),
        "failures": outcomes.count(ClientOutcome.FAILED),
        "errors": outcomes.count(ClientOutcome.NOT_PLAYED),
        "skipped": outcomes.count(ClientOutcome.NOT_APPLICABLE),
    }
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{sum(each.seconds for each in played):.3f}")
    for each in played:
        case = SubElement(
            suite, "testcase", classname="conform-client", name=each.trouble.name, time=f"{each.seconds:.3f}"
        )
        tag = {
            ClientOutcome.FAILED: "failure",
            ClientOutcome.NOT_PLAYED: "error",
            ClientOutcome.NOT_APPLICABLE: "skipped",
        }
        if each.verdict.outcome in tag:
            problem = SubElement(case, tag[each.verdict.outcome], message=_clean(each.verdict.reason))
            problem.text = _clean("\n".join(_explained(each))) or None
        if each.course is not None:
            properties = SubElement(case, "properties")
            for name, value in asdict(each.course).items():
                if value is not None:
                    SubElement(properties, "property", name=name, value=_value(value))
    indent(suite)
    found: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return found


def _explained(played: PlayedTrouble) -> list[str]:
    if played.verdict.outcome is not ClientOutcome.FAILED:
        return []
    trouble = played.trouble
    return [
        f"broker: {trouble.done}",
        f"client: must {trouble.expected} ({trouble.source})",
        *([f"course: {played.course}"] if played.course and str(played.course) else []),
        *played.verdict.evidence,
    ]


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
