"""``rejoin explore-client``: orders of answers are chosen, played on a real consumer, and shrunk."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from conformance.clients.orders.bugs import BUGS
from rejoin.__main__ import main
from rejoin.conform.exploring.held_answers import AnswerHolder
from rejoin.conform.exploring.orders import Act, SeededChooser, WrongOrder, read_order, shrunk
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service import logs
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests import paths

logs.configure("critical")

CONSUMER = Path(__file__).parent / "consumer.py"
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["explore-client", *words])
    return end.value.code or 0, *capsys.readouterr()


def test_an_order_is_played_on_a_real_consumer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT / "src"))
    order = tmp_path / "late.order"
    order.write_text("# An answer is late.\nrecords\nwait\nnatural\nleave\n")
    options = ["--order", str(order), "--into", str(tmp_path / "out"), "--timeout", "60"]
    code, out, err = ended(capsys, *options, "--", sys.executable, str(CONSUMER))
    assert (code, out, err) == (0, "order  passed  choices that could not be made: 1\n\n1 played, 0 failed\n", "")


def test_a_lost_record_is_found_and_its_order_shrunk(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT / "src"))
    order = tmp_path / "lost.order"
    order.write_text("records\nrecords\n")
    options = ["--order", str(order), "--into", str(tmp_path), "--timeout", "60"]
    code, out, _ = ended(capsys, *options, "--", sys.executable, str(CONSUMER), "skips")
    assert code == 1
    assert out.startswith("order  failed  ")
    assert "of partition 1, and never processed 5" in out
    assert (tmp_path / "order.order").read_text().endswith("\nrecords\nrecords\n")


def test_a_held_answer_comes_when_it_is_released() -> None:
    holder = AnswerHolder()
    holder.close()
    came: list[tuple[str, Response | None]] = []
    answers = [HeartbeatResponse(), HeartbeatResponse()]
    for name, answer in zip("ab", answers, strict=True):
        pending = PendingReply()
        pending.response = answer
        reply = holder.gate(pending, REQUEST, Context(4, listener="PLAINTEXT"))
        reply.when_answered(partial(lambda name, response: came.append((name, response)), name))
    assert ([each.api for each in holder.held], came) == (["Heartbeat", "Heartbeat"], [])
    holder.release(holder.held[1])
    assert [name for name, _ in came] == ["b"]
    holder.open()
    assert came == [("b", answers[1]), ("a", answers[0])]
    assert holder.replaced == []


def test_an_error_or_nothing_comes_in_place_of_an_answer() -> None:
    holder = AnswerHolder()
    holder.close()
    came: list[Response | None] = []
    for _ in range(2):
        pending = PendingReply()
        pending.response = HeartbeatResponse()
        holder.gate(pending, REQUEST, Context(4, listener="PLAINTEXT")).when_answered(came.append)
    holder.refuse(holder.held[0], ErrorCode.ILLEGAL_GENERATION)
    holder.drop(holder.held[0])
    assert came == [HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION), None]
    assert (holder.held, holder.replaced) == ([], [REQUEST, REQUEST])


def test_the_kit_itself_is_not_held() -> None:
    pending = PendingReply()
    assert AnswerHolder().gate(pending, REQUEST, Context(4)) is pending


def test_a_seed_chooses_the_same_order_each_time() -> None:
    def chosen(seed: int) -> list[str | None]:
        chooser = SeededChooser(seed, 50)
        return [chooser.next(["Fetch", "Heartbeat"], [Act.RECORDS]) for _ in range(51)]

    assert chosen(1) == chosen(1) != chosen(2)
    assert chosen(1)[-1] is None
    assert {"Fetch", "Heartbeat", "wait", "records"} == set(chosen(1)[:-1])


def test_a_seed_with_errors_sends_them_for_a_while() -> None:
    chooser = SeededChooser(3, 2_000, errors=True)
    order = [str(chooser.next(["Fetch", "Heartbeat"], [])) for _ in range(2_000)]
    instead = {each for each in order if " " in each}
    assert {"Fetch drop", "Heartbeat ILLEGAL_GENERATION", "Fetch NOT_LEADER_OR_FOLLOWER"} <= instead
    assert read_order("\n".join(order)) == order


def test_an_order_shrinks_to_the_choices_that_matter() -> None:
    order = ["Fetch", "wait", "Heartbeat", "join", "wait", "Fetch", "JoinGroup", "leave", "wait"]
    looks = 0

    async def fails(tried: Sequence[str]) -> bool:
        nonlocal looks
        looks += 1
        return "join" in tried and "JoinGroup" in tried[tried.index("join") :]

    assert asyncio.run(shrunk(order, fails, 40)) == ["join", "JoinGroup"]
    assert looks <= 40
    assert asyncio.run(shrunk(order, fails, 0)) == order


def test_the_orders_that_show_bugs_can_be_read() -> None:
    files = [*(paths.ROOT / "conformance/clients/orders").glob("*.order")]
    assert {each.name for each in files} == {each.file for each in BUGS}
    for file in files:
        assert read_order(file.read_text())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Fetsch", "there is no choice Fetsch; is it Fetch"),
        ("wait drop", "there is no API wait"),
        ("Fetch dropp", "there is no error dropp; is it drop"),
        ("Heartbeat ILLEGAL_GENERATIONS", "there is no error ILLEGAL_GENERATIONS; is it ILLEGAL_GENERATION"),
    ],
)
def test_a_choice_that_does_not_exist_is_named(line: str, said: str) -> None:
    with pytest.raises(WrongOrder, match=said):
        read_order(f"wait\n{line}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seeds", "3:1", "--", "true"], "--seeds 3:1: expected at least one seed from 0 on, such as 0:1000"),
        (["--steps", "0", "--", "true"], "--steps 0: expected 1 to 10000"),
        (["--brokers", "0", "--", "true"], "--brokers 0: expected 1 to 9"),
        (["--shrink", "-1", "--", "true"], "--shrink -1: expected 0 or more"),
        (["--timeout", "0", "--", "true"], "--timeout 0: expected up to 600 seconds, and more than 0"),
        ([], "expected a command after --, with its arguments: rejoin explore-client -- COMMAND"),
        (["--", "/no/such/program"], "/no/such/program: No such file or directory; expected a program after --"),
    ],
)
def test_a_wrong_command_line_is_refused_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(capsys, *words) == (2, "", f"rejoin explore-client: {said}\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"# a comment\nFetch\nFech\n", ":3: there is no choice Fech; is it Fetch?"),
        (b"# a comment\n", ": has no choices; expected one a line, such as Fetch or wait"),
        (b"\xff\n", ": is not UTF-8 text; expected one choice a line, such as Fetch or wait"),
    ],
)
def test_a_wrong_order_is_refused_with_its_line(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = tmp_path / "wrong.order"
    order.write_bytes(content)
    ended_so = ended(capsys, "--order", str(order), "--", "true")
    assert ended_so == (2, "", f"rejoin explore-client: --order {order}{said}\n")
