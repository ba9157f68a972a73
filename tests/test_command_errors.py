"""Every command has one form of errors: a line on the standard error, ``rejoin COMMAND: problem; what to do``.

The commands and their options are found by walking the command line, so that a new one is tested, too.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import pytest
from cyclopts import App

from rejoin.__main__ import main
from rejoin.client.commands.acls.options import parser as acls_parser
from rejoin.client.commands.entity_configs.options import QUOTAS, USERS
from rejoin.client.commands.groups.options import parser as groups_parser
from rejoin.client.commands.replicas.options import elect_parser, reassign_parser
from rejoin.client.commands.topics.options import parser as topics_parser
from rejoin.commands import build

TOOLS = {
    "groups": groups_parser,
    "topics": topics_parser,
    "acls": acls_parser,
    "quotas": QUOTAS.parser,
    "users": USERS.parser,
    "reassign": reassign_parser,
    "elect": elect_parser,
}
"""Commands that are tools of Kafka's: argparse reads their options."""

NOWHERE = "127.0.0.1:1"

FILES = {
    ("serve", "--journal"): ("serve --port 0 --journal PATH", "file below"),
    ("serve", "--data"): ("serve --port 0 --data PATH", "file below"),
    ("serve", "--port-file"): ("serve --port 0 --port-file PATH", "folder below apart"),
    ("serve", "--ready-file"): ("serve --port 0 --ready-file PATH", "folder below apart"),
    ("serve", "--evidence"): ("serve --port 0 --evidence PATH -- true", "file below"),
    ("demo", "--out"): ("demo --out PATH", "file below"),
    ("serve", "--kafka-port-file"): ("serve --port 0 --kafka-port-file PATH", "folder below apart"),
    ("serve", "--control-token-file"): ("serve --port 0 --control --control-token-file PATH", "missing folder"),
    ("serve", "--tls-ca-file"): ("serve --port 0 --tls-self-signed --tls-ca-file PATH", "folder below apart"),
    ("serve", "--users-file"): ("serve --port 0 --users-file PATH", "missing folder"),
    ("assign", "--streams"): ("assign --streams PATH --members a", "missing folder"),
    ("proxy", "--command-config"): (f"proxy --bootstrap-server {NOWHERE} --command-config PATH", "missing folder"),
    ("proxy", "--tls-ca-file"): (
        f"proxy --bootstrap-server {NOWHERE} --listen 127.0.0.1:0 --tls-self-signed --tls-ca-file PATH",
        "folder below apart",
    ),
    ("proxy", "--users-file"): (
        f"proxy --bootstrap-server {NOWHERE} --listen 127.0.0.1:0 --users-file PATH",
        "missing folder",
    ),
    ("proxy", "--journal"): (f"proxy --bootstrap-server {NOWHERE} --listen 127.0.0.1:0 --journal PATH", "file below"),
    ("proxy", "--control-token-file"): (
        f"proxy --bootstrap-server {NOWHERE} --listen 127.0.0.1:0 --control --control-token-file PATH",
        "missing folder",
    ),
    ("conform", "--command-config"): (f"conform --bootstrap-server {NOWHERE} --command-config PATH", "missing folder"),
    ("conform", "--baseline"): (f"conform --bootstrap-server {NOWHERE} --baseline PATH", "missing folder"),
    ("conform", "--junit"): (f"conform --bootstrap-server {NOWHERE} --junit PATH", "folder below apart"),
    ("conform", "--html"): (f"conform --bootstrap-server {NOWHERE} --html PATH", "folder below apart"),
    ("conform", "--write-baseline"): (
        f"conform --bootstrap-server {NOWHERE} --write-baseline PATH",
        "folder below apart",
    ),
    ("conform-client", "--command-config"): (
        f"conform-client --proxy {NOWHERE} --command-config PATH -- true",
        "missing folder",
    ),
    ("conform-client", "--junit"): ("conform-client --junit PATH -- true", "folder below apart"),
    ("conform-client", "--transcripts"): ("conform-client --transcripts PATH -- true", "file below"),
    ("explore-client", "--order"): ("explore-client --order PATH -- true", "missing folder file"),
    ("explore-client", "--into"): ("explore-client --into PATH -- true", "file below"),
    ("consume", "--journal"): ("consume --group g --topic t --journal PATH", "file below"),
    ("produce", "--file"): (f"produce --topic t --bootstrap-server {NOWHERE} --file PATH", "missing folder"),
    ("groups", "--command-config"): (
        f"groups --list --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("topics", "--command-config"): (
        f"topics --list --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("acls", "--command-config"): (f"acls --list --bootstrap-server {NOWHERE} --command-config PATH", "missing folder"),
    ("quotas", "--command-config"): (
        f"quotas --describe --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("users", "--command-config"): (
        f"users --describe --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("reassign", "--command-config"): (
        f"reassign --list --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("reassign", "--reassignment-json-file"): (
        "reassign --execute --reassignment-json-file PATH",
        "missing folder file",
    ),
    ("reassign", "--topics-to-move-json-file"): (
        "reassign --generate --broker-list 1 --topics-to-move-json-file PATH",
        "missing folder file",
    ),
    ("elect", "--command-config"): (
        f"elect --election-type preferred --all-topic-partitions --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("elect", "--path-to-json-file"): (
        "elect --election-type preferred --path-to-json-file PATH",
        "missing folder file",
    ),
    ("quotas", "--add-config-file"): ("quotas --alter --user a --add-config-file PATH", "missing folder"),
    ("users", "--add-config-file"): ("users --alter --user a --add-config-file PATH", "missing folder"),
    ("groups", "--from-file"): ("groups --reset-offsets g --from-file PATH --dry-run", "missing folder"),
    ("simulate", "FILE"): ("simulate PATH", "missing folder file"),
    ("simulate", "--html"): ("simulate cold_start --quiet --html PATH", "folder below apart"),
    ("simulate", "--journal"): ("simulate cold_start --quiet --journal PATH", "file below"),
    ("simulate", "--client-logs-into"): (
        "simulate cold_start --quiet --client-logs java --client-logs-into PATH",
        "file below",
    ),
    ("lab", "--file"): ("lab PATH --no-browser", "missing folder file"),
    ("explore", "WORLD"): ("explore PATH", "missing folder"),
    ("explore", "--into"): ("explore two_members_join --depth 1 --into PATH", "file below"),
    ("search", "--into"): ("search --seeds 1 --into PATH", "file below"),
    ("report", "INPUTS"): ("report PATH --out OUT", "missing folder file"),
    ("report", "--out"): ("report JOURNAL --out PATH", "file below"),
    ("report", "--annotations"): ("report JOURNAL --out OUT --annotations PATH", "missing folder"),
    ("watch", "--journal"): ("watch --once --journal PATH", "missing file"),
    ("watch", "--command-config"): (
        f"watch --once --bootstrap-server {NOWHERE} --command-config PATH",
        "missing folder",
    ),
    ("watch", "--log"): (f"watch --once --bootstrap-server {NOWHERE} --log PATH", "missing folder"),
    ("watch", "--out"): (f"watch --once --bootstrap-server {NOWHERE} --out PATH", "file below"),
    ("why", "FOLDERS"): ("why g PATH", "missing folder file"),
    ("why", "--command-config"): (f"why g --bootstrap-server {NOWHERE} --command-config PATH", "missing folder"),
    ("why", "--annotations"): (f"why g --bootstrap-server {NOWHERE} --annotations PATH", "missing folder"),
    ("mcp", "FOLDER"): ("mcp PATH", "missing folder file"),
    ("mcp", "--command-config"): (f"mcp --bootstrap-server {NOWHERE} --command-config PATH", "missing folder"),
    ("sweep", "--grid"): ("sweep PATH --out OUT", "missing folder file"),
    ("sweep", "--out"): ("sweep GRID --out PATH", "file below"),
    ("account", "--directory"): ("account PATH", "missing folder file"),
    ("log dump", "--file"): ("log dump PATH", "missing folder file"),
    ("log dump", "--data"): ("log dump --data PATH", "missing folder file"),
    ("log verify", "--file"): ("log verify PATH", "missing folder"),
    ("log verify", "--data"): ("log verify --data PATH", "missing folder file"),
    ("log export", "--data"): ("log export --data PATH", "missing folder file"),
    ("log export", "--out"): ("log export --data OUT --out PATH", "folder below apart"),
    ("log import", "--file"): ("log import PATH --data OUT", "missing folder file"),
    ("log import", "--data"): ("log import EMPTY --data PATH", "file below"),
    ("transcript play", "--file"): ("transcript play PATH", "missing folder"),
}
"""Every option and argument that names a file or a folder: a command line that gets there, and which paths are wrong.

missing: nothing is there. folder: an empty one. file: a text of no known kind. below: within a file, which cannot be.
apart: in a folder that does not exist.
"""

GRID = "scenario: cold_start\nseeds: 1\nparameters:\n  consumers: [1, 2]\n"
JOURNAL = (
    '{"schema_version":1,"run_id":"r","source":"coordinator","node":"n1","seq":1,"at_ms":10,'
    '"event":"group_emptied","group_id":"g","generation_id":1}\n'
)


class Option(NamedTuple):
    """An option or an argument of a command."""

    name: str
    is_argument: bool
    required: bool
    takes_value: bool
    kind: Any
    names_file: bool
    may_be_empty: bool = False


def of_cyclopts(app: App) -> Iterator[Option]:
    for argument in app.assemble_argument_collection():
        if not argument.parse or argument.name == "*":
            continue
        kind = argument.hint
        kind = (
            next((each for each in get_args(kind) if each is not type(None)), kind)
            if type(None) in get_args(kind)
            else kind
        )
        names_file = (
            "Path" in str(argument.hint) or argument.parameter.metavar in {"DIR", "FILE"} or argument.name == "--file"
        )
        takes_value = kind is not bool
        may_be_empty = bool(argument.parameter.consume_multiple)
        yield Option(
            argument.name, argument.index is not None, argument.required, takes_value, kind, names_file, may_be_empty
        )


def of_argparse(parser: ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        if action.option_strings and action.dest != "help":
            takes_value = action.nargs != 0
            names_file = action.metavar in {"FILE", "DIR"}
            may_be_empty = action.nargs in {"*", "?"}
            yield Option(
                action.option_strings[0], False, False, takes_value, action.type or str, names_file, may_be_empty
            )


@cache
def commands() -> dict[str, list[Option]]:
    """Every command by its name, with its options."""

    def walk(app: App, chain: tuple[str, ...]) -> Iterator[tuple[str, list[Option]]]:
        names = [name for name in app if not name.startswith("-")]
        for name in names:
            yield from walk(app[name], (*chain, name))
        if not names:
            name = " ".join(chain)
            tool = TOOLS.get(name)
            yield name, list(of_cyclopts(app) if tool is None else of_argparse(tool()))

    return dict(walk(build(), ()))


def required(command: str, *, without: str = "") -> list[str]:
    """Arguments that give a command what it requires, with values that nothing looks at."""
    given = [option for option in commands()[command] if option.required and option.name != without]
    return [
        word
        for option in sorted(given, key=lambda option: not option.is_argument)
        for word in (["x"] if option.is_argument else [option.name, "x"])
    ]


@pytest.fixture(autouse=True)
def _without_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REJOIN_STORE", raising=False)


def refused(command: str, arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """The problem that a command prints."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as end:
        main([*command.split(), *arguments])
    out, err = capfd.readouterr()
    assert (end.value.code, out) == (2, "")
    found = re.fullmatch(rf"rejoin {command}: ([^\n]+)\n", err)
    assert found is not None, err
    return found[1]


@pytest.mark.parametrize("command", commands())
def test_an_option_that_does_not_exist(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    said = refused(command, [*required(command), "--no-such-option"], capfd)
    assert said == f"there is no option --no-such-option; rejoin {command} --help lists all"


@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option) for command, options in commands().items() for option in options if option.required],
)
def test_an_argument_that_is_missing(command: str, option: Option, capfd: pytest.CaptureFixture[str]) -> None:
    said = refused(command, required(command, without=option.name), capfd)
    name = option.name.lstrip("-").upper() if option.is_argument else rf"{option.name} \S+"
    assert re.fullmatch(rf"{name} is missing; rejoin {command} --help describes it", said), said


@pytest.mark.parametrize("command", commands())
def test_a_value_that_is_missing(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    # One option of each kind: all of them are read by one parser.
    of_kinds = {
        str(option.kind): option
        for option in commands()[command]
        if option.takes_value and not option.is_argument and not option.may_be_empty
    }
    for option in of_kinds.values():
        said = refused(command, [*required(command, without=option.name), option.name], capfd)
        assert said == f"{option.name}: the value is missing; rejoin {command} --help describes it"


@pytest.mark.parametrize("command", commands())
def test_a_value_of_the_wrong_type(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    for option in commands()[command]:
        if option.is_argument:
            continue
        if option.kind in (int, float):
            expected = "expected a whole number" if option.kind is int else "expected a number"
        elif get_origin(option.kind) is Literal:
            expected = f"expected {', '.join(get_args(option.kind)[:-1])} or {get_args(option.kind)[-1]}"
        else:
            continue
        said = refused(command, [*required(command, without=option.name), option.name, "nonsense"], capfd)
        assert said == f"{option.name} nonsense: {expected}"


@pytest.mark.parametrize("command", commands())
def test_an_argument_too_many(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [option for option in commands()[command] if option.is_argument]
    if not any(get_origin(option.kind) in (list, tuple) for option in arguments):
        options = required(command)[sum(option.required for option in arguments) :]
        said = refused(command, [*options, *("x" for _ in arguments), "surplus"], capfd)
        assert said == f"unexpected surplus; rejoin {command} --help shows what can be given"


def test_every_path_of_the_command_line_is_in_the_table() -> None:
    found = {
        (command, option.name) for command, options in commands().items() for option in options if option.names_file
    }
    assert sorted(found) == sorted(FILES)


@pytest.mark.parametrize(("at", "wrong"), [(at, wrong) for at, (_, kinds) in FILES.items() for wrong in kinds.split()])
def test_a_path_that_cannot_be_used(
    at: tuple[str, str], wrong: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command, _ = at
    folder, text, journal, grid = (tmp_path / name for name in ("folder", "text.txt", "journal.jsonl", "grid.yaml"))
    folder.mkdir()
    text.write_text("hello\n")
    journal.write_text(JOURNAL)
    grid.write_text(GRID)
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    path = {
        "missing": tmp_path / "missing",
        "folder": folder,
        "file": text,
        "below": text / "below",
        "apart": tmp_path / "missing" / "apart",
    }[wrong]
    places = {"PATH": path, "OUT": tmp_path / "out", "JOURNAL": journal, "GRID": grid, "EMPTY": empty}
    arguments = [str(places.get(word, word)) for word in FILES[at][0].removeprefix(command).split()]
    said = refused(command, arguments, capfd)
    assert str(path if wrong != "below" else text) in said
    assert re.search("; |expected", said, re.IGNORECASE), said
