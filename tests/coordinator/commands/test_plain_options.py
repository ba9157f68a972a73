"""``rejoin serve`` reads plain options as its parser does, and leaves everything else to the parser."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from rejoin.coordinator.commands.plain_options import plain_options
from rejoin.coordinator.commands.serve_options import SHORT, ServeOptions
from rejoin.coordinator.commands.serve_parser import run

PLAIN = [
    "--kafka-port 9092 --kafka-port-file p --as-kafka 2.8",
    "",
    "--host 0.0.0.0 --port 0 --insecure",
    "--tls-self-signed --tls-ca-file ca.pem --users-file users.yaml",
    "--port=0 --advertised-host here",
    "--journal j --data d",
    "--brokers 3",
    "--store postgresql://u:p@h/d",
    "-c a=b --config c=d=e",
    "--topic t:3 --topic u:1:5",
    "--log-level debug",
    "--port-file /tmp/port --max-body-bytes 12",
    "--ready-file ready.json --evidence why",
    "--control --clock fast:60",
    "--control --control-token-file secret",
]
OTHERS = [
    "--help",
    "extra",
    "--prot 1",
    "--port x",
    "--port 1.5",
    "--port",
    "--port 1 --port 2",
    "--control=true",
    "--no-control",
    "--log-level loud",
    "--host --port",
    "--port -1",
    "--port_file x",
    "-p 1",
    "-- x",
    "--return 1",
]


def parsed(given: list[str]) -> ServeOptions:
    app = App()
    app.default(run)
    _, bound, _ = app.parse_args(given, exit_on_error=False)
    options = bound.arguments.get("options", ServeOptions())
    assert isinstance(options, ServeOptions)
    return options


def plain(line: str) -> dict[str, Any] | None:
    return plain_options(ServeOptions, line.split(), SHORT)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_options_are_read_as_the_parser_reads_them(line: str) -> None:
    options = plain(line)
    assert options is not None
    assert ServeOptions(**options) == parsed(line.split())


def test_every_option_is_read() -> None:
    tried = {name for line in PLAIN for name in plain(line) or ()}
    assert tried == {field.name for field in fields(ServeOptions)}


def test_types_are_those_of_the_fields() -> None:
    options = plain("--port 7 --port-file p --topic t:1")
    assert options == {"port": 7, "port_file": Path("p"), "topic": ("t:1",)}


@pytest.mark.parametrize("line", OTHERS)
def test_the_parser_reads_everything_else(line: str) -> None:
    assert plain(line) is None
