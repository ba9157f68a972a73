"""Outputs of Kafka's ``kafka-acls.sh`` and ``kafka-configs.sh`` beside those of Rejoin's own commands."""

from __future__ import annotations

import re
from typing import Final

from conformance.clients.admin.tools import arranged

FRAME: Final = re.compile(r"\s+at |Caused by: |\s+\.\.\. \d+ more|(java|org\.apache)[\w.]+(Exception|Error)\b")
"""Lines of a Java stack trace."""
MESSAGE: Final = re.compile(r"((?:java|org)\.[\w.]+Exception): .*")
"""An error of a broker, in its own words behind the name of the exception."""

HEADER: Final = "ACLs for principal"


def comparable(output: str) -> str:
    """An output without stack traces, empty lines and the words of errors; in order what hash maps order."""
    lines = [MESSAGE.sub(r"\1: ...", line) for line in arranged(output).splitlines() if not FRAME.match(line)]
    sections: list[list[str]] = [[]]
    for line in arranged("\n".join(filter(None, lines))).splitlines():
        if line.startswith(HEADER):
            sections.append([])
        sections[-1].append(line)
    return "\n".join(line for section in sorted(sections) for line in section)
