"""Scripts of the recordings of produce, fetch and transactions, as they are read from their files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rejoin.coordinator.config import Settings
from tests.paths import ROOT

GIVEN: Final = sorted((ROOT / "tests/golden/transactions").glob("*.jsonl"))
RECORDED: Final = sorted((ROOT / "tests/golden/transactions/recorded").glob("*.jsonl.gz"))
"""Recordings of ``conformance.transactions.record``, the scripts of a set in one file."""
THREE_BROKERS: Final = "three-brokers"
"""Sets whose names begin so are played on three brokers, which move leaders, die and come back."""
_FIRST: Final = '{"script":"'
"""The header of a script begins with this."""


@dataclass
class Step:
    """A request with its answer."""

    number: int
    api: str
    version: int
    client: str
    broker: int
    sent: float
    answered: float
    request: dict[str, Any]
    answer: Any

    def __str__(self) -> str:
        return f"step {self.number}: {self.api} v{self.version}"


@dataclass
class Action:
    """Something that was done and is no request: a wait, or what became of the broker."""

    what: str
    fields: dict[str, Any]


@dataclass
class Script:
    """A recording: the topics and settings that there were, and the lines."""

    topics: dict[str, dict[str, Any]]
    brokers: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    """Transactional ids that there were, and their epochs."""
    leaders: dict[str, list[int]] = field(default_factory=dict)
    """Which broker leads each partition of the internal topics, where there are several brokers."""
    is_fresh: bool = True
    """Whether the cluster was never restarted before."""
    ids: dict[str, str] | None = None
    """The ids of topics, where the recording has the ids that the broker drew."""
    lines: list[Step | Action] = field(default_factory=list)

    @property
    def steps(self) -> list[Step]:
        """The requests."""
        return [line for line in self.lines if isinstance(line, Step)]

    @cached_property
    def changes_internal_topics(self) -> bool:
        """Whether it gives internal topics other settings, so that they are compacted."""
        changes = [step.request for step in self.steps if step.api == "IncrementalAlterConfigs"]
        return any(each["resourceName"].startswith("__") for change in changes for each in change["resources"])


def scripts() -> Iterator[tuple[str, list[str]]]:
    """Every script by its name, as the lines of its file."""
    for path in GIVEN:
        yield path.stem, path.read_text().splitlines()
    for path in RECORDED:
        yield from scripts_of(path)


def scripts_of(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The scripts of one set, which lie in one file."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(_FIRST)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name = lines[start].removeprefix(_FIRST).partition('"')[0]
        yield f"{path.name.partition('.')[0]}/{name}", lines[start:end]


def read_script(given: list[str]) -> Script:
    header, *lines = [json.loads(line) for line in given]
    return script_of(header, lines)


def script_of(header: dict[str, Any], lines: list[dict[str, Any]]) -> Script:
    """The script with this header and these lines."""
    return Script(
        topics=header["topics"],
        brokers=header["brokers"],
        settings=settings_of(header),
        epochs=header.get("epochs", {}),
        leaders=header.get("leaders", {}),
        is_fresh=header.get("fresh", True),
        ids=header.get("ids"),
        lines=[_line(line) for line in lines],
    )


def _line(line: dict[str, Any]) -> Step | Action:
    if "do" in line:
        return Action(line["do"], line)
    return Step(
        line["n"],
        line["api"],
        line["version"],
        line["client"],
        line["broker"],
        line["sent"],
        line.get("answered", line["sent"]),
        line["request"],
        line["answer"],
    )


def settings_of(header: dict[str, Any]) -> dict[str, Any]:
    """The settings of the broker that a node has, too."""
    found = known_settings(header.get("settings", {}))
    found["emulator_deny"] = tuple(f"User:*:ALL:{each}" for each in header.get("deny", ()))
    level = header.get("features", {}).get("transaction.version")
    return found if level is None else found | {"emulator_transaction_version": int(level)}


def known_settings(given: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a broker that a node has, too."""
    known = {info.alias: name for name, info in Settings.model_fields.items()}
    return {known[name]: _setting(value) for name, value in given.items() if name in known}


def _setting(value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.lstrip("-").isdigit() else value
