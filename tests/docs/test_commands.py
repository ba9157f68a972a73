"""The commands that the documents show are there, and those whose output is shown print it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rejoin.__main__ import main
from rejoin.commands import COMMANDS
from tests.docs.texts import TEXTS

CONSOLE = re.compile(r"^```console\n\$ rejoin (.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = [(name, command, output) for name, text in TEXTS.items() for command, output in CONSOLE.findall(text)]
PRINTED: dict[str, str] = {}
"""What a command has printed: some are shown on two pages."""

CALLED = re.compile(r"(?:^|[`$] ?)rejoin ([a-z][a-z-]*)((?: [^\n`|#]*)?)", re.MULTILINE)


@pytest.mark.xdist_group("shown-commands")
@pytest.mark.parametrize(("name", "command", "output"), SHOWN, ids=[f"{name}: {command}" for name, command, _ in SHOWN])
def test_prints_what_is_shown(
    name: str,
    command: str,
    output: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """``...`` stands for lines, or the rest of a line, that are left out."""
    if command not in PRINTED:
        monkeypatch.setenv("COLUMNS", "160")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            main(command.split())
        assert not ended.value.code
        PRINTED[command] = "\n".join(line.rstrip() for line in capsys.readouterr().out.strip("\n").splitlines())
    printed = PRINTED[command]
    pattern = re.escape(output.strip("\n")).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, printed, re.DOTALL), printed


def test_every_command_that_is_named_is_there() -> None:
    named = {(name, command) for name, text in TEXTS.items() for command, _ in CALLED.findall(text)}
    assert {command for _, command in named} & COMMANDS.keys()
    assert [(name, command) for name, command in sorted(named) if command not in COMMANDS] == []


def test_every_option_that_is_named_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    wrong = []
    known: dict[str, set[str]] = {}
    for name, text in TEXTS.items():
        for command, rest in CALLED.findall(text):
            if command not in COMMANDS:
                continue
            named = re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)
            if not named:
                continue
            words = [command, *re.findall(r"^ (dump|verify|export|import|play|list|answer|show)\b", rest)]
            shown = " ".join(words)
            if shown not in known:
                with pytest.raises(SystemExit):
                    main([*words, "--help"])
                known[shown] = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
            wrong += [(name, shown, option) for option in named if option not in known[shown]]
    assert wrong == []
