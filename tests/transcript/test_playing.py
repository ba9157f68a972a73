"""What ``rejoin transcript play`` prints: what came out, where that differs, and what is wrong with a file."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from random import Random

import pytest

from rejoin.commands import build
from rejoin.transcript.grammar.table import ADMIN_REQUESTS, DIRECTIVES, MEMBER_DIRECTIVES, MEMBER_REQUESTS
from rejoin.transcript.interpreter import TranscriptPlayer
from rejoin.transcript.player import TranscriptError, play
from tests import paths

CLEAN = """\
# A member joins alone.

topic t 1
a joins
----
g  created
g  a-1 may join
a  JoinGroup -> MEMBER_ID_REQUIRED a-1
g  a-1 joined
g  a-1 leads
g  Empty -> PreparingRebalance
g  first rebalance: a-1 joined (at most 3000 ms)
a  JoinGroup waits

a beat
----
a  Heartbeat -> ILLEGAL_GENERATION
"""


def run(*arguments: str) -> int:
    code: int = build()(["transcript", *arguments], result_action="return_value") or 0
    return code


def test_a_file_that_holds_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "clean.txt"
    file.write_text(CLEAN)
    assert run("play", str(file)) == 0
    assert capsys.readouterr() == (CLEAN, "")


def test_standard_input_is_played_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(CLEAN))
    assert run("play", "-") == 0
    assert capsys.readouterr().out == CLEAN


def test_a_topic_may_be_as_large_as_one_of_the_control_api(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "large.txt"
    came_out = "t  topic grew from 10001 to 30000 partitions\nadmin  CreatePartitions -> NONE\n"
    file.write_text(f"# It grows.\n\ntopic t 10001\ntopic t to 30000\n----\n{came_out}")
    assert run("play", str(file)) == 0
    assert capsys.readouterr().out.endswith(came_out)


def test_what_differs_is_shown_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.txt"
    file.write_text(CLEAN.replace("Heartbeat -> ILLEGAL_GENERATION", "Heartbeat -> REBALANCE_IN_PROGRESS"))
    assert run("play", str(file)) == 1
    printed = capsys.readouterr()
    assert printed.out == CLEAN
    assert printed.err == (
        f"\nrejoin: {file}: the output differs (- expected, + printed by this run); "
        "--rewrite writes it into the file\n\n"
        "line 17, after `a beat`:\n"
        "  - a  Heartbeat -> REBALANCE_IN_PROGRESS\n"
        "  + a  Heartbeat -> ILLEGAL_GENERATION\n"
    )


def test_rewrite_writes_what_came_out(tmp_path: Path) -> None:
    file = tmp_path / "wrong.txt"
    file.write_text(CLEAN.replace("Heartbeat -> ILLEGAL_GENERATION", "Heartbeat -> REBALANCE_IN_PROGRESS"))
    assert run("play", str(file), "--rewrite") == 0
    assert file.read_text() == CLEAN


def test_a_block_without_a_rule_expects_nothing_in_particular() -> None:
    played = play("# Something.\n\ntopic t 1\na joins\n")
    assert not played.differing
    assert "g  a-1 joined" in played.text


def test_a_mistake_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mistake.txt"
    file.write_text("# A claim.\n\ntopic t 1\na jions\n----\n")
    assert run("play", str(file)) == 2
    problem = "a jions: there is no command 'jions'; is it joins: NAME joins [OPTION=VALUE ...]?"
    assert capsys.readouterr().err == f"rejoin: {file}:4: {problem}\n"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("jump 3", "there is no command 'jump'; "),
        ("quietly", "expected quietly COMMAND"),
        ("a", "there is no command 'a'; expected acl, advance, alter-share-offsets, beating, "),
        ("a join sesion=3", "cannot read 'sesion=3'; expected NAME join [v=9]"),
        ("a join session=long", "session=: expected a whole number, not 'long'"),
        ("a join v=99", "JoinGroup has versions 0 to 9, not 99"),
        ("a beat 3", "cannot read '3'; expected NAME beat [id=ID] [generation=N] [instance=I]"),
        ("a is reason=none", "cannot read 'reason=none'"),
        ("a commit t=5", "expected TOPIC:PARTITION, TOPIC:PARTITION=OFFSET or …=OFFSET/LENGTH, not 't=5'"),
        ("a sync give b=t:0", "no member is called 'b' so far; expected a"),
        ("a sync give a=t", "expected an assignment as t:0,1+u:2, or - for none, not 't'"),
        ("a sync give a", "expected NAME=PARTITIONS behind give, not 'a'"),
        ("a sync later give a=-", "cannot read 'later'"),
        ("leave who:a", "expected NAME, id:ID or instance:INSTANCE, not 'who:a'"),
        ("advance soon", "expected a whole number, not 'soon'"),
        ("advance", "expected advance MS | advance to=session|join|sync|append|expiry"),
        ("advance to=join", "no join timer is set"),
        ("log", "expected log ok | hold | fail=ERROR"),
        ("log fail=NOT_COORDINATER", "there is no error 'NOT_COORDINATER'; is it NOT_COORDINATOR?"),
        ("topic t", "expected topic NAME COUNT"),
        ("topic t to many", "expected a whole number, not 'many'"),
        ("end 7", "expected end PRODUCER commit|abort"),
        ("expire", "expected expire NAME | id:ID"),
        ("stable a", "expected KEY=VALUE, not 'a'"),
        ("find g v=0 type=x", "type=: expected a whole number, not 'x'"),
    ],
)
def test_a_mistake_says_what_is_expected(command: str, problem: str) -> None:
    with pytest.raises(TranscriptError) as raised:
        play(f"# A claim.\n\na beat\n{command}\n----\n")
    assert problem in raised.value.problem
    assert str(raised.value).startswith(f"line 4: {command}: ")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("group.max.sise=3", "group.max.sise"),
        ("group.max.size=many", "group.max.size: expected an integer, not 'many'"),
        ("group.max.size", "expected KEY=VALUE, not 'group.max.size'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: str, problem: str) -> None:
    with pytest.raises(TranscriptError, match=problem):
        play(f"set {settings}\na beat\n----\n")


def test_settings_come_first() -> None:
    with pytest.raises(TranscriptError, match="settings come before any other command"):
        play("a beat\nset group.max.size=3\n----\n")


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("play", str(tmp_path / "none.txt")) == 2
    assert capsys.readouterr().err == (
        f"rejoin: {tmp_path / 'none.txt'}: No such file or directory; expected a transcript, or - for standard input\n"
    )


def test_every_command_of_the_language_is_listed_and_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    run("language")
    listed = capsys.readouterr().out
    for verb in (*DIRECTIVES, *ADMIN_REQUESTS, *MEMBER_REQUESTS, *MEMBER_DIRECTIVES):
        assert verb in listed
    for verb in DIRECTIVES:
        assert callable(getattr(TranscriptPlayer, f"do_{verb.replace('-', '_')}"))
    for verb in MEMBER_DIRECTIVES:
        assert callable(getattr(TranscriptPlayer, f"member_{verb}"))


ODD_WORDS = (
    *("", "-1", "9" * 20, "\x00", "=", "id=", "t:", "t:-1", "v=-1", "v=99", "epoch=99999999999", f"t:0={'9' * 20}"),
    *("generation=99999999999", "a" * 40_000, "é", "owns=t:", "to=", "topic", "1_000", "²", "t:²", "+", "t:0=1/-5"),
    *("names=+", "timeout=-5", "session=0", "AAAA", "id=0", "v=0", "advance", "heartbeat"),
)


def test_no_text_is_a_traceback() -> None:
    texts = [path.read_text() for path in sorted(paths.TRANSCRIPTS.rglob("*.txt")) if path.stat().st_size < 1_500]
    chance = Random(35)
    for _ in range(120):
        lines = chance.choice(texts).splitlines()
        for _ in range(chance.randint(1, 4)):
            number = chance.randrange(len(lines))
            words = lines[number].split() or ["a"]
            words[chance.randrange(len(words))] = chance.choice(ODD_WORDS)
            lines[number] = " ".join(words)
        with contextlib.suppress(TranscriptError):
            play("\n".join(lines))


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("advance 99999999999999999999", "expected 0 to 315360000000 ms (ten years), not 99999999999999999999"),
        ("advance -1", "expected 0 to 315360000000 ms (ten years), not -1"),
        ("compact t", "there is no topic 't'; expected one that was created"),
        ("topic t 1\ncompact u", "there is no topic 'u'; expected t"),
        ("compact t u", "expected compact [TOPIC]"),
    ],
)
def test_commands_that_cannot_be_played_are_refused(command: str, problem: str) -> None:
    with pytest.raises(TranscriptError, match=re.escape(problem)):
        play(f"# A claim.\n\n{command}\n----\n")


def test_a_member_without_an_id_gets_one_as_kafka_draws_them() -> None:
    played = play("# A claim.\n\ntopic t 1\na heartbeat id= v=0 names=t\na heartbeat\n----\n")
    assert played.blocks[-1].got[-1] == "a  ConsumerGroupHeartbeat -> epoch 2"
