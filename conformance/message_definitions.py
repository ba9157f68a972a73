"""Kafka's own message definitions as a table for tests: names, types, versions, tags, defaults.

    python -m conformance.message_definitions kafka-clients-4.4.0.jar conform/player/message-definitions-4.4.jsonl.gz

The table has a line for each request and response of a broker.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

_FOLDER: Final = "common/message/"
_OF_MESSAGE: Final = ("apiKey", "name", "validVersions", "flexibleVersions")
_OF_FIELD: Final = ("name", "type", "versions", "nullableVersions", "tag", "default", "entityType")
_COMMENT: Final = re.compile(r"(?m)^\s*//.*$")


def definitions(jar: str) -> list[dict[str, Any]]:
    """The requests and responses that a broker serves, by key."""
    with ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.startswith(_FOLDER) and name.endswith(".json")]
        found = [json.loads(_COMMENT.sub("", archive.read(name).decode())) for name in names]
    served = {each["apiKey"] for each in found if "broker" in each.get("listeners", ())}
    messages = [each for each in found if each["type"] in ("request", "response") and each["apiKey"] in served]
    return [_message(each) for each in sorted(messages, key=lambda each: (each["apiKey"], each["type"]))]


def _message(definition: dict[str, Any]) -> dict[str, Any]:
    structs = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}
    kept = {key: definition[key] for key in _OF_MESSAGE}
    return kept | {"fields": [_field(each, structs) for each in definition["fields"]]}


def _field(definition: dict[str, Any], structs: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: definition[key] for key in _OF_FIELD if key in definition}
    inner = definition.get("fields") or structs.get(definition["type"].removeprefix("[]"))
    return kept | {"fields": [_field(each, structs) for each in inner]} if inner else kept


def main() -> None:
    jar, table = sys.argv[1:]
    lines = (json.dumps(definition, separators=(",", ":")) + "\n" for definition in definitions(jar))
    Path(table).write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
