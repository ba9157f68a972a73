"""The outcomes as JUnit XML: a suite for each set, a case for each script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rejoin.conform.comparison.outcomes import ScriptOutcome

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML has no way to write."""


def junit(outcomes: Sequence[ScriptOutcome], broker: str) -> bytes:
    """The document."""
    top = _counted(Element("testsuites", name=f"rejoin conform {broker}"), outcomes)
    for name in dict.fromkeys(each.of_set for each in outcomes):
        own = [each for each in outcomes if each.of_set == name]
        suite = _counted(SubElement(top, "testsuite", name=name), own)
        for each in own:
            case = SubElement(suite, "testcase", classname=name, name=each.name, time=f"{each.seconds:.3f}")
            if each.not_applicable is not None:
                SubElement(case, "skipped", message=_clean(each.not_applicable))
            elif each.differences:
                message, kind = _clean(str(each.differences[0])), each.differences[0].kind
                failure = SubElement(case, "failure", message=message, type=kind)
                failure.text = _clean("\n".join(map(str, each.differences)))
    indent(top)
    found: bytes = tostring(top, encoding="utf-8", xml_declaration=True)
    return found


def _counted(element: Element, outcomes: Sequence[ScriptOutcome]) -> Element:
    counts = {
        "tests": len(outcomes),
        "failures": sum(bool(each.differences) for each in outcomes),
        "skipped": sum(each.not_applicable is not None for each in outcomes),
        "errors": 0,
    }
    for name, count in counts.items():
        element.set(name, str(count))
    element.set("time", f"{sum(each.seconds for each in outcomes):.3f}")
    return element


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
