"""The control API itself: it says what it can do, keeps out who may not use it, and refuses what makes no sense."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rejoin.__main__ import main
from rejoin.coordinator.commands.serve import options_from
from rejoin.coordinator.commands.serve_options import ServeOptions
from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, Options, StartFailed
from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator, running
from tests.coordinator.control.conftest import Start
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.service.conftest import Serve, serve
from tests.docs.texts import TEXTS

__all__ = ["serve"]


async def test_it_describes_itself(node: ControlledNode) -> None:
    answer = await node.control("GET", "")
    assert (answer["clock"], answer["faults"]) == ("virtual", 0)
    described = {(each["method"], each["path"]): each for each in answer["operations"]}
    assert {"advance_ms", "until"} <= described["POST", "/control/clock"]["body"]["properties"].keys()
    rule = described["POST", "/control/faults"]["body"]["properties"]
    fields = list(FaultRule.model_fields)
    assert list(rule) == fields
    for kit in (GroupCoordinator, BlockingGroupCoordinator):
        assert list(inspect.signature(kit.add_fault).parameters) == ["self", *fields]
    assert all(each["does"] for each in answer["operations"])
    assert all(field.get("description") for field in rule.values())


@pytest.mark.parametrize("brokers", [1, 2])
async def test_it_says_where_kafka_clients_connect(brokers: int) -> None:
    async with running(brokers=brokers) as coordinator, aiohttp.ClientSession() as session:
        async with session.get(f"{coordinator.url}/control") as answered:
            servers = (await answered.json())["bootstrap_servers"]
        assert servers == coordinator.bootstrap_servers
        assert len(servers.split(",")) == brokers
        for address in servers.split(","):
            host, _, port = address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()


async def test_without_a_listener_for_kafka_clients_there_is_no_address(node: ControlledNode) -> None:
    assert (await node.control("GET", ""))["bootstrap_servers"] is None


async def test_every_operation_that_is_described_is_there(node: ControlledNode) -> None:
    for each in (await node.control("GET", ""))["operations"]:
        path = each["path"].replace("{id}", "7")
        answered = await node.request(each["method"], path, {"no-such-field": 1} if each.get("body") else None)
        assert "unknown-route" not in answered.body.decode()
        is_for_several = "broker" in path or path.endswith(("/partitions", "/elect-preferred"))
        assert answered.status in {200, 400, 404} | ({409} if is_for_several else set()), answered.body


async def test_it_is_off_unless_asked_for(serve: Serve) -> None:
    node = await serve()
    for method, path in (("GET", "/control"), ("POST", "/control/clock"), ("GET", "/control/anything")):
        answered = await node.request(method, path)
        assert answered.status == 404
        assert answered.json["detail"] == "/control is off; start the coordinator with --control"


@pytest.mark.parametrize(
    ("given", "status"),
    [(None, 401), ("Bearer wrong", 401), ("Basic secret", 401), ("secret", 401), ("Bearer secret", 200)],
)
async def test_with_a_token_only_who_shows_it_comes_in(start: Start, given: str | None, status: int) -> None:
    node = await start(token="secret")
    headers = {} if given is None else {"Authorization": given}
    assert (await node.request("GET", "/control", **headers)).status == status
    assert (await node.request("GET", "/groups")).status == 200, "looking around needs no token"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
async def test_beyond_this_machine_it_is_never_without_a_token(host: str) -> None:
    with pytest.raises(StartFailed, match="expected --control-token-file too"):
        App(Options(host=host, port=0, control=ControlOptions()))
    App(Options(host=host, port=0, control=ControlOptions(token="secret")))
    App(Options(host=host, port=0))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.7"])
async def test_on_this_machine_it_may_be_without_one(host: str) -> None:
    App(Options(host=host, port=0, control=ControlOptions()))


@pytest.mark.parametrize("token", ["", "two\nlines", "ü"])
async def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(StartFailed, match="printable ASCII"):
        App(Options(port=0, control=ControlOptions(token=token)))


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/controls", 404, "there is no /controls"),
        ("GET", "/control/clok", 404, "the nearest is /control/clock"),
        ("GET", "/control/controll", 404, "the nearest is /control, and"),
        ("GET", "/control/faults/1/wiat", 404, "the nearest is /control/faults/{id}/wait"),
        ("GET", "/control/transcript?since=1&since=2", 400, "since: expected an integer, not ['1', '2']"),
        ("PUT", "/control/clock", 405, "/control/clock takes GET, POST, not PUT"),
        ("GET", "/control/faults/9", 404, "there is no fault '9'"),
        ("POST", "/control/faults/9/release", 404, "there is no fault '9'"),
        ("POST", "/control/clock?advance_ms=1", 400, "takes no parameters"),
    ],
)
async def test_what_is_not_there_is_reported(
    node: ControlledNode, method: str, path: str, status: int, words: str
) -> None:
    answered = await node.request(method, path)
    assert (answered.status, words in answered.json["detail"]) == (status, True), answered.body


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"\xff", "application/json", 400),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    node: ControlledNode, body: bytes, kind: str, status: int
) -> None:
    answered = await node.request("POST", "/control/clock", body, Content_Type=kind)
    assert answered.status == status
    assert answered.headers["Content-Type"] == "application/problem+json"


async def test_nothing_of_python_is_in_what_is_said_of_a_body(node: ControlledNode) -> None:
    answered = await node.request("POST", "/control/clock", b"nonsense")
    said = "invalid JSON: expected a value at line 1 column 2"
    assert answered.json["detail"] == f"POST /control/clock: {said}, not 'nonsense'"
    assert answered.json["errors"] == [{"field": "", "problem": said, "given": "nonsense"}]
    answered = await node.request("POST", "/control/faults", {"latency_ms": {"uniform": [500]}})
    assert answered.json["errors"][0]["given"] == "a list of 1"
    answered = await node.request("POST", "/control/faults", {"latency_ms": float("nan")})
    assert answered.json["errors"][0]["given"] == "NaN"


@pytest.mark.parametrize("path", ["transcript", "broker-log", "request-log"])
async def test_a_group_that_was_never_there_has_no_evidence(node: ControlledNode, path: str) -> None:
    await node.stable()
    assert await node.refused("GET", f"/{path}?group=gg") == (404, "there is no group 'gg'; is it 'g'?")
    await node.control("POST", "/clock", advance_ms=45_000)
    mark = (await node.control("GET", "/mark"))["mark"]
    await node.call("DeleteGroups", {"groupsNames": ["g"]})
    await node.control("GET", f"/{path}?group=g&since={mark}")
    await node.call("Heartbeat", {"groupId": "other", "generationId": 1, "memberId": "m"})
    await node.control("GET", f"/{path}?group=other")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topic", "orders:3", "--topic", "clicks:1", "--topic", "orders:4"], "--topic: orders is given twice"),
        (["--clock", "virtual"], "--clock virtual: expected --control, too"),
        (["--control", "--control-token-file", "/nope"], "/nope: No such file or directory; expected a file with the"),
        (
            ["--control", "--control-token-file", "/dev/null"],
            "--control-token-file: expected printable ASCII characters",
        ),
        (["--control", "--control-token", "x"], "there is no option --control-token; is it --control-token-file?"),
        (["--control", "--clock", "slow"], "--clock slow: expected real, virtual, or fast:SPEED"),
        (["--control", "--host", "0.0.0.0"], "expected --control-token-file too"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_reported(
    arguments: list[str], words: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["rejoin", "serve", "--log-level", "critical", "--port", "0", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capfd.readouterr().err


def test_the_token_can_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    monkeypatch.setenv("REJOIN_CONTROL_TOKEN", "from-the-environment")
    tokens = [options_from(ServeOptions(control=True, control_token_file=path)).control for path in (None, file)]
    assert [each and each.token for each in tokens] == ["from-the-environment", "from-a-file"]
    assert (options_from(ServeOptions()).control, options_from(ServeOptions()).token) == (None, "from-the-environment")


async def test_snapshots_need_a_log_in_memory(serve: Serve) -> None:
    node = await serve({"clock": None, "control": ControlOptions(clock="virtual")}, group_max_size=5)
    for path, body in (("snapshot", b"{}"), ("reset", b"{}")):
        answered = await node.request("POST", f"/control/{path}", body)
        assert (answered.status, "offsets log in memory" in answered.json["detail"]) == (409, True)


async def test_the_recording_is_in_the_answers_head(node: ControlledNode) -> None:
    answered: Any = await node.request("GET", "/control/transcript")
    assert answered.headers["Kafka-Control-Mark"] == "1"


def test_settings_are_not_touched_by_the_control() -> None:
    assert [name for name in Settings.model_fields if "control" in name.split("_")] == []


async def test_the_answer_of_a_wait_for_a_group_is_documented(node: ControlledNode) -> None:
    await node.stable("orders-app", "one")
    answer = await node.control("POST", "/groups/wait", group="orders-app")
    (block,) = re.findall(r"^```json\n(\{\n  \"group\".*?)^```", TEXTS["docs/testing.md"], re.MULTILINE | re.DOTALL)
    documented = json.loads(block)
    assert documented.keys() == answer.keys()
    assert documented["group"].keys() == answer["group"].keys()
    (member,), (there,) = documented["group"]["members"], answer["group"]["members"]
    assert member.keys() == there.keys()
    assert documented["group"]["state"] == answer["group"]["state"]
