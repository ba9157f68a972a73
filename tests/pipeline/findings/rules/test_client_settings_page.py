"""docs/client-settings.md has the settings of every client, made from the table that advice takes them from."""

from __future__ import annotations

import pytest

from rejoin.pipeline.findings.clients.table import CLIENTS, DURATION, SETTINGS, TABLE, ClientSetting, Value
from tests.docs.tables import check_table
from tests.paths import ROOT

PAGE = ROOT / "docs" / "client-settings.md"
UNITS = {"ms": "ms", "s": "seconds", "duration": "`time.Duration`", "": ""}


def table_of(client: str) -> str:
    """Each setting of a client beside its name in Kafka's documentation."""
    rows = ["| Kafka's documentation | name | unit | default | since |", "|---|---|---|---|---|"]
    for key in SETTINGS:
        setting = TABLE[client].get(key)
        if setting is None:
            rows.append(f"| `{key}` | none | | | |")
        else:
            rows.append(
                f"| `{key}` | `{setting.name}` | {UNITS[setting.unit]} | {defaults_of(setting)} | {setting.since} |"
            )
    return "\n".join(rows)


def defaults_of(setting: ClientSetting) -> str:
    """The newest default first, then the older ones."""
    (since, newest), *older = reversed(list(setting.defaults.items()))
    if not older:
        return shown(setting, newest)
    before = [
        f"{shown(setting, value)} since {version}" if version else f"{shown(setting, value)} before"
        for version, value in older
    ]
    return ", ".join([f"{shown(setting, newest)} since {since}", *before])


def shown(setting: ClientSetting, value: Value) -> str:
    """A default as it would be written."""
    if value == "not set":
        return ""
    return f"`{setting.in_its_unit(int(value) * 1_000) if setting.unit == DURATION else value}`"


@pytest.mark.parametrize("client", CLIENTS)
def test_the_table_is_that_of_advice(client: str, request: pytest.FixtureRequest) -> None:
    check_table(PAGE, f"## {client}", table_of(client), rewrite=request.config.getoption("--rewrite"))


def test_every_client_has_a_section_and_no_other() -> None:
    headings = [line.removeprefix("## ") for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert headings == list(CLIENTS)
