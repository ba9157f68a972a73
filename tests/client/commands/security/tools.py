"""Outputs of Kafka's ``kafka-acls.sh`` and ``kafka-configs.sh``, and their comparison."""

from __future__ import annotations

import re
from typing import Final

from tests.paths import GOLDEN as FOLDER

GOLDEN: Final = FOLDER / "security" / "commands.jsonl"
"""Runs of the tools with what they printed, in their order. Written by conformance.security.admin_tools."""

SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Settings of the broker."""
FRAME: Final = re.compile(r"\s+at |Caused by: |\s+\.\.\. \d+ more|(java|org\.apache)[\w.]+(Exception|Error)\b")
"""Lines of a Java stack trace."""
MESSAGE: Final = re.compile(r"((?:java|org)\.[\w.]+Exception): .*")
"""An error of a broker, in its own words behind the name of the exception."""
HEADER: Final = "ACLs for principal"


def arranged(output: str) -> str:
    """An output to compare: without stack traces, empty lines and the words of errors; in order what hash maps order.

    Those are the resources, the entries of each, entities with quotas, and the quotas of an entity.
    """
    lines = [MESSAGE.sub(r"\1: ...", line).rstrip() for line in output.splitlines() if not FRAME.match(line)]
    sections: list[list[list[str]]] = [[]]
    for line in filter(None, lines):
        if line.startswith(HEADER):
            sections.append([[line]])
        elif line.startswith((" ", "\t")) and sections[-1]:
            sections[-1][-1].append(f"\t{line.strip()}")
        else:
            text = ", ".join(sorted(line.split(", "))) if line.startswith("Quota configs") else line
            sections[-1].append([text])
    for section in sections:
        parts = [[part[0], *sorted(part[1:])] for part in section]
        is_header = bool(parts) and parts[0][0].startswith(HEADER)
        section[:] = [*parts[:is_header], *sorted(parts[is_header:])]
    return "\n".join(line for section in sections for part in section for line in part)
