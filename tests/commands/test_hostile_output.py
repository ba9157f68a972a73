"""Names that a terminal would obey: no command prints one as it is, in text, in JSON, or in an error."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import unicodedata
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from rich.table import Table
from rich.text import Text

from rejoin.__main__ import main
from rejoin.client import Consumer
from rejoin.commands import COMMANDS
from rejoin.console import VisibleConsole
from rejoin.coordinator.commands.log.contents import LogSummary, StoredTopicChange
from rejoin.coordinator.commands.log.files import write
from rejoin.coordinator.testing import running
from tests.paths import ROOT
from tests.sources.modules import PACKAGES, modules, tree_of

HOSTILE: Final = "red\x1b]0;title\x07\x1b[2Ja\u202ec\x7fé"
PRINTERS: Final = {"rejoin.output", "rejoin.error_lines"}
"""The modules that print."""
WRITES_NO_NAMES: Final = {"coordinator.commands.journal_schema"}
CLIENT_JOURNAL: Final = ROOT / "tests" / "golden" / "journals" / "service" / "client-orders-app-1-000000000001.jsonl"


def dangerous(text: str) -> list[str]:
    """Characters that move a cursor, change what a terminal does, or turn the direction of text."""
    return [each for each in text if each not in "\n\t" and unicodedata.category(each) in ("Cc", "Cf")]


def ended(*line: str) -> tuple[Any, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(line)
    return end.value.code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("given", [[HOSTILE], [f"--{HOSTILE}"], ["--group", HOSTILE, "--topic", HOSTILE, HOSTILE]])
def test_no_command_prints_a_word_of_its_line_as_it_is(command: str, given: list[str]) -> None:
    code, out, err = ended(command, *given)
    assert code
    assert (dangerous(out), dangerous(err)) == ([], [])
    assert f"rejoin {command}" in err


async def test_no_command_prints_a_name_that_a_client_chose_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    journal = CLIENT_JOURNAL.read_text().replace('"orders-app"', json.dumps(HOSTILE, ensure_ascii=False))
    (tmp_path / "client" / CLIENT_JOURNAL.name).write_text(journal)
    (tmp_path / "played.txt").write_text(f"# {HOSTILE}\n\nlook\n----\n")
    settings = {"group.initial.rebalance.delay.ms": 0}
    async with asyncio.timeout(120), running(topics={"orders": 2}, settings=settings) as node:
        servers = node.bootstrap_servers
        async with Consumer("orders", bootstrap_servers=servers, group_id=HOSTILE, client_id=HOSTILE) as consumer:
            while not consumer.assignment():
                await consumer.poll(20)
            lines = [
                ["groups", "--bootstrap-server", servers, "--list"],
                ["groups", "--bootstrap-server", servers, "--list", "--state"],
                ["groups", "--bootstrap-server", servers, "--describe", "--group", HOSTILE],
                ["groups", "--bootstrap-server", servers, "--describe", "--group", HOSTILE, "--members", "--verbose"],
                ["groups", "--bootstrap-server", servers, "--delete", "--group", HOSTILE],
                ["topics", "--bootstrap-server", servers, "--create", "--topic", HOSTILE],
                ["topics", "--bootstrap-server", servers, "--describe", "--topic", HOSTILE],
                ["why", HOSTILE, "--bootstrap-server", node.url],
                ["why", HOSTILE, "--bootstrap-server", node.url, "--json"],
                ["why", HOSTILE, "--bootstrap-server", servers, "--for", "0"],
                ["why", HOSTILE, "--bootstrap-server", servers, "--for", "0", "--json"],
                ["why", f"{HOSTILE}x", "--bootstrap-server", node.url],
                ["watch", "--bootstrap-server", servers, "--once"],
                ["account", str(tmp_path / "client")],
                ["account", str(tmp_path / "client"), "--json"],
                ["assign", "--topics", "orders:4", "--members", f"a,{HOSTILE}"],
                ["assign", "--topics", "orders:4", "--members", f"a,{HOSTILE}", "--json"],
                ["transcript", "play", str(tmp_path / "played.txt")],
            ]
            done = [await asyncio.to_thread(ended, *line) for line in lines]
    for line, (_, out, err) in zip(lines, done, strict=True):
        assert (line, dangerous(out), dangerous(err)) == (line, [], [])
        assert "red" in out + err, line
        if line[-1] == "--json":
            assert "\\u001b]0;title\\u0007" in out
            assert "\\u202ec\\u007fé" in out
            assert all(map(json.loads, out.splitlines() if line[0] == "account" else [out]))


def test_an_export_of_a_log_has_escapes_in_its_strings() -> None:
    out = StringIO()
    record = json.dumps({"name": HOSTILE}, ensure_ascii=False)
    write(out, LogSummary(topics=[StoredTopicChange(1, record)]), [])
    assert dangerous(out.getvalue()) == []
    assert {"topicsVersion": 1, "topics": {"name": HOSTILE}} in map(json.loads, out.getvalue().splitlines())


def test_a_table_of_rich_shows_its_cells_and_keeps_its_own_codes() -> None:
    table = Table("group")
    table.add_row(Text(HOSTILE, "red"))
    console = VisibleConsole(file=StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(table)
    console.print(HOSTILE, markup=False)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    codes = set(dangerous(said))
    assert codes == {"\x1b"}
    assert "\x1b]0" not in said
    assert "\x1b[2J" not in said
    assert "\\x1b]0;title" in said


def printing(tree: ast.Module) -> Iterator[str]:
    """Calls that print past the printer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (
            isinstance(node.func, ast.Name) or getattr(node.func, "attr", "") == "write"
        ):
            called = ast.unparse(node.func)
            if called in ("print", "Console", "sys.stdout.write", "sys.stdout.buffer.write"):
                yield called


@pytest.mark.xdist_group("sources")
def test_commands_print_with_one_printer_alone() -> None:
    own = [(f"rejoin.{path.stem}", path) for path in sorted((ROOT / "src" / "rejoin").glob("*.py"))]
    found = {
        module: sorted(set(printing(tree_of(path))))
        for module, path in [*modules(*PACKAGES), *own]
        if module not in WRITES_NO_NAMES
    }
    assert {module: calls for module, calls in found.items() if calls and module not in PRINTERS} == {}
