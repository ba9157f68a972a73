"""``rejoin conform`` on this broker in a process, and on what is no broker."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.packing import SOURCES, digest, packed_sets, scripts_in_steps
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.conform.applicability import BrokerFeatures, why_not
from rejoin.conform.commands.access import access_by
from rejoin.conform.commands.running import Wanted, address_of, chosen, main
from rejoin.conform.comparison.compare import Difference
from rejoin.conform.comparison.outcomes import ScriptOutcome, classified, kind_of
from rejoin.conform.judged_broker import BrokerRefused, look
from rejoin.conform.judging import Judge
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.player.messages import api_key, newest
from rejoin.conform.player.prefix import RunPrefix
from rejoin.conform.recordings.reading import SETS, PackedScript, read_set
from rejoin.conform.reports import baseline
from rejoin.conform.reports.junit import junit
from rejoin.conform.reports.page import page
from rejoin.conform.reports.table import table
from tests.conform.own_broker import own_broker

PLAYED = (
    "groups/plain/looking/finding-several",
    "offsets/plain/commits/from-outside",
    "consumer-protocol/groups/delete-s",
    "transactions/several/batches-of-several-producers",
    "transactions/several/a-group-with-pending-offsets-is-deleted",
    "records/fetch-sessions",
    "share-groups/written/dead-letters",
    "share-groups/random/random-7",
)
SMALL = [name for name in SETS if name != "transactions"]
LISTED_TWICE = "wire/plain/bad-requests/a-protocol-listed-twice"


def scripts_named(*names: str) -> list[PackedScript]:
    return [
        script
        for of_set in SETS
        if any(name.startswith(of_set) for name in names)
        for script in read_set(of_set)
        if script.full_name.startswith(names)
    ]


async def judged(*names: str, **settings: object) -> list[ScriptOutcome]:
    given = {"group_min_session_timeout_ms": 500, "transaction_partition_verification_enable": True} | settings
    async with own_broker(**given) as address:
        judge = Judge(await look(address, BrokerAccess()))
        outcomes = await judge.judge(scripts_named(*names), lambda _: None)
        assert await judge.clean_up() == []
        assert await names_on(judge) == []
    return outcomes


async def names_on(judge: Judge) -> list[str]:
    """The topics and groups that are left of a run."""
    topics = await judge.broker.ask("Metadata", {"topics": None}, 1)
    groups = await judge.broker.ask("ListGroups", {}, 4)
    names = [each["name"] for each in topics["topics"]] + [each["groupId"] for each in groups["groups"]]
    return [name for name in names if name.startswith(judge.prefix)]


async def test_scripts_of_each_kind_are_played_and_nothing_is_left() -> None:
    outcomes = await judged(
        *PLAYED,
        group_consumer_assignment_interval_ms=0,
        group_consumer_migration_policy="bidirectional",
        group_share_assignment_interval_ms=0,
    )
    assert {each.of_set for each in outcomes if each.word == "equal"} == {name.partition("/")[0] for name in PLAYED}
    assert {each.name: list(map(str, each.differences)) for each in outcomes if each.differences} == {}


async def test_a_departure_is_found_and_classified() -> None:
    outcomes = await judged(LISTED_TWICE, group_initial_rebalance_delay_ms=400)
    (outcome,) = outcomes
    assert [one.kind for one in outcome.differences] == ["error"]
    assert outcome.differences[0].kafka == "(no answer)"


@pytest.mark.parametrize(
    ("path", "kafka", "other", "kind"),
    [
        ("errorCode", 0, 25, "error"),
        ("", "(no answer)", {}, "error"),
        ("members", ["a", "b"], ["b", "a"], "order"),
        ("members", ["a", "b"], ["b"], "field"),
        ("generationId", 1, 2, "field"),
        ("at", 3, 4_000, "time"),
    ],
)
def test_each_difference_has_a_kind(path: str, kafka: object, other: object, kind: str) -> None:
    assert kind_of(Difference(1, "JoinGroup", 9, path, kafka, other)) == kind


def test_fields_of_a_cluster_itself_are_not_compared() -> None:
    assert classified([Difference(1, "Metadata", 9, "clusterId", "a", "b")]) == ()


# --- the recordings


def test_the_packed_recordings_are_those_of_the_workshop() -> None:
    """Otherwise: ``python -m conformance.packing``."""
    assert SOURCES.read_text().strip() == digest()
    for name, lines in packed_sets(scripts_in_steps()).items():
        if name in ("groups", "offsets", "admin"):
            assert [line for script in read_set(name) for line in (script.header, *script.lines)] == lines


def test_every_script_has_a_name_of_its_own() -> None:
    names = [script.full_name for name in SMALL for script in read_set(name)]
    assert len(set(names)) == len(names)


# --- what cannot be asked


def features(**settings: str) -> BrokerFeatures:
    spoken = ("JoinGroup", "SyncGroup", "Heartbeat", "DescribeGroups", "LeaveGroup")
    return BrokerFeatures({api_key(api): (0, newest(api)) for api in spoken}, settings)


def test_a_script_is_not_applicable_where_a_request_or_a_setting_is_missing() -> None:
    script = next(script for script in read_set("groups") if "plain/heartbeats" in script.name)
    assert why_not(script, features()) is None
    without = replace(features(), versions={})
    assert why_not(script, without) == f"{script.requests[0]['api']} is not spoken"
    delay = "group.initial.rebalance.delay.ms"
    assert why_not(script, features(**{delay: "3000"})) == f"{delay} is 3000, and was 400 in the recording"


def test_a_broker_is_described_where_it_has_the_settings_of_the_recording() -> None:
    script = next(script for script in read_set("admin") if "describing-a-broker" in script.name)
    speaks = BrokerFeatures({api_key("DescribeConfigs"): (0, newest("DescribeConfigs"))}, {"num.partitions": "2"})
    assert why_not(script, speaks) is None
    for name, recorded in script.header["settings"].items():
        other = replace(speaks, settings={name: "50"})
        assert why_not(script, other) == f"{name} is 50, and was {recorded} in the recording"


def test_a_script_of_the_workshop_alone_says_why() -> None:
    reasons = {script.unplayable for name in SMALL for script in read_set(name)} - {None}
    assert len(reasons) >= 4
    assert all(script.lines == [] for script in read_set("groups") if script.unplayable)


# --- names


def test_names_are_prefixed_on_the_way_out_and_plain_on_the_way_back() -> None:
    prefix = RunPrefix("run-")
    asked = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}], "groupId": "g", "memberId": "g"}
    sent = prefix.outgoing("OffsetCommit", asked)
    assert (sent["groupId"], sent["topics"][0]["name"], sent["memberId"]) == ("run-g", "run-orders", "g")
    assert prefix.incoming("OffsetCommit", asked, sent) == asked
    assert prefix.outgoing("DeleteGroups", {"groupsNames": ["", "a"]}) == {"groupsNames": ["", "run-a"]}
    assert prefix.outgoing("Metadata", {"topics": [{"name": "__consumer_offsets"}]})["topics"][0]["name"][:2] == "__"


def test_groups_and_topics_of_others_are_not_seen() -> None:
    listed = {"groups": [{"groupId": "theirs"}, {"groupId": "run-a"}]}
    assert RunPrefix("run-").incoming("ListGroups", {}, listed) == {"groups": [{"groupId": "a"}]}


# --- reports


def an_outcome(**more: object) -> ScriptOutcome:
    one = Difference(2, "Heartbeat", 4, "errorCode", 25, "<b>\0", {"groupId": "g"})
    return replace(ScriptOutcome("groups", "plain/a", classified([one])), **more)  # type: ignore[arg-type]


OUTCOMES = (
    an_outcome(),
    ScriptOutcome("groups", "plain/b"),
    ScriptOutcome("offsets", "c", not_applicable="JoinGroup is not spoken"),
)


def test_the_table_counts_and_names() -> None:
    lines = table(OUTCOMES).splitlines()
    assert lines[1].split() == ["groups", "2", "1", "0", "1", "0"]
    assert lines[3].split() == ["all", "3", "1", "0", "1", "1"]
    assert "  groups/plain/a" in lines
    assert "     1  JoinGroup is not spoken" in lines


def test_junit_has_a_case_for_each_script() -> None:
    top = ElementTree.fromstring(junit(OUTCOMES, "localhost:9092"))
    assert (top.get("tests"), top.get("failures"), top.get("skipped")) == ("3", "1", "1")
    failure = top.find("./testsuite[@name='groups']/testcase[@name='plain/a']/failure")
    assert failure is not None
    assert failure.get("type") == "error"
    assert top.find(".//skipped") is not None


def test_the_page_shows_each_difference_and_is_no_markup() -> None:
    text = page(OUTCOMES, "<i>localhost", "4.4.0")
    assert "groups/plain/a" in text
    assert "&lt;b&gt;" in text
    assert "<i>" not in text
    assert "2 Heartbeat v4" in text


def test_a_baseline_takes_known_differences_and_no_others() -> None:
    known = baseline.read(baseline.written(OUTCOMES, "4.4.0"))
    assert baseline.beside(OUTCOMES[0], known).word == "known"
    other = an_outcome(differences=classified([Difference(3, "SyncGroup", 5, "errorCode", 0, 25)]))
    assert baseline.beside(other, known).word == "different"
    assert baseline.gone([replace(OUTCOMES[0], differences=())], known) == ["groups/plain/a"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "rejoin-conform-baseline-1", "differences": {"a": 1}}'])
def test_what_is_no_baseline_is_refused(text: str) -> None:
    with pytest.raises(baseline.BadBaseline):
        baseline.read(text)


# --- the command


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(""), "--bootstrap-server is missing: expected HOST:PORT of the broker to judge"),
        (Wanted("localhost"), "--bootstrap-server localhost: expected HOST:PORT"),
        (Wanted("localhost:99999"), "--bootstrap-server localhost:99999: expected HOST:PORT"),
        (Wanted("localhost:1", sets=("group",)), "--set group: there is no such set; is it groups?"),
        (Wanted("localhost:1", sets=("wire",), only="nowhere"), "--only nowhere: no script of these sets is called so"),
        (Wanted("localhost:1", at_once=0), "--at-once 0: expected 1 to 32"),
        (
            Wanted("localhost:1", sets=("wire",), baseline=Path("/no/where")),
            "--baseline /no/where: No such file",
        ),
        (Wanted("localhost:1", sets=("wire",), command_config="/no/where"), "--command-config /no/where: No such file"),
    ],
)
def test_a_wrong_option_is_one_sentence(wanted: Wanted, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(wanted) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_scripts_are_listed_without_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Wanted("", sets=("wire",), lists=True)) == 0
    assert "wire/plain/bad-requests/a-protocol-listed-twice" in capsys.readouterr().out.splitlines()


def test_addresses_and_names_are_read() -> None:
    assert address_of("[::1]:9092") == ("::1", 9092)
    wanted = Wanted("localhost:1", sets=("offsets", "wire"), only="plain/commits")
    assert {script.of_set for script in chosen(wanted)} == {"offsets"}


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _closes(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _rubbish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"\xff" * 64)
    writer.close()


async def _speaks_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def _short_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await reader.read(100)
    writer.write(struct.pack(">i", 9) + request[8:12] + b"\0\0\x7f\xff\xff")
    writer.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_closes, "closed the connection"),
        (_rubbish, "did not answer as a Kafka broker does"),
        (_speaks_http, "did not answer as a Kafka broker does"),
        (_short_answer, "did not answer as a Kafka broker does"),
    ],
)
async def test_what_is_no_broker_is_named(answer: Answer, said: str) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        with pytest.raises(BrokerRefused, match=said):
            await look(server.sockets[0].getsockname()[:2], BrokerAccess())


async def test_a_login_that_fails_is_no_broker_that_cannot_be_reached() -> None:
    given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    config = ClientSecurityConfig.model_validate(given | {"sasl_username": "a", "sasl_password": "b"})
    async with own_broker() as address:
        with pytest.raises(BrokerRefused, match=r"^the login failed: .+ in --command-config"):
            await look(address, access_by(config))


async def test_where_nothing_listens_is_said() -> None:
    server = await asyncio.start_server(_closes, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()[:2]
    server.close()
    await server.wait_closed()
    with pytest.raises(BrokerRefused, match="cannot be reached"):
        await look(address, BrokerAccess())


async def test_a_broker_that_went_away_leaves_things_and_says_so() -> None:
    async with own_broker() as address:
        judge = Judge(await look(address, BrokerAccess()))
    with pytest.raises(OSError, match="Connect call failed"):
        await judge.judge(scripts_named("wire/"), lambda _: None)
    assert await judge.clean_up() != []


async def test_the_files_of_a_run_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"junit": tmp_path / "a.xml", "html": tmp_path / "a.html", "write_baseline": tmp_path / "a.json"}
    async with own_broker(group_initial_rebalance_delay_ms=400) as (host, port):
        wanted = Wanted(f"{host}:{port}", sets=("wire",), only="listed-twice", **files)  # type: ignore[arg-type]
        assert await asyncio.to_thread(main, wanted) == 1
        again = Wanted(f"{host}:{port}", sets=("wire",), only="listed-twice", baseline=tmp_path / "a.json")
        assert await asyncio.to_thread(main, again) == 0
    assert all(path.stat().st_size for path in files.values())
    assert list(json.loads(files["write_baseline"].read_text())["differences"]) == [LISTED_TWICE]
    assert "Apache Kafka 4.4.0, recorded, and" in capsys.readouterr().out
