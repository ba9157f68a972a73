"""Each finding in the words of each client: no setting of another one, none that it does not have, no false unit."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

import rejoin.pipeline.findings
from rejoin.coordinator.config import Settings
from rejoin.journal.kafka_logs.bug_signs import BROKER
from rejoin.pipeline import findings, schemas
from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.clients import table
from rejoin.pipeline.findings.clients.advice import agree_on_an_assignor
from rejoin.pipeline.findings.clients.table import CLIENTS, TABLE
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.known_bugs.bug import KnownBug
from rejoin.pipeline.findings.known_bugs.table import BUGS
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules import judge
from rejoin.pipeline.findings.sums import KINDS
from rejoin.pipeline.findings.table import findings as findings_of
from rejoin.pipeline.why.sources import open_source
from tests.paths import GOLDEN

Row = dict[str, Any]
NEEDED: Final = {seen.table for seen in KINDS.values()} | {"events"}

_OF_EACH: Final = {client: {setting.name for setting in settings.values()} for client, settings in TABLE.items()}
_WORDS: Final = {
    client: {words[client] for words in (table.POLL, table.REVOKED, table.BATCHES) if client in words}
    for client in CLIENTS
}
_ALL: Final = sorted({name for names in _OF_EACH.values() for name in names}, key=len, reverse=True)
_NAME: Final = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, _ALL))})(?![\w-]|\.\w)")
_TOO_COMMON: Final = {"group_id"}


def foreign(text: str, client: str) -> set[str]:
    """Settings in a text that are other clients' and not this one's."""
    own = _OF_EACH[client]
    for words in _WORDS[client]:
        text = text.replace(words, "")
    return set(_NAME.findall(text)) - own - _TOO_COMMON


def in_words_of(history: GroupHistory, client: str) -> list[Row]:
    history.__dict__["known_clients"] = (client,)
    return list(rows_of(history))


def check(history: GroupHistory, client: str) -> Iterator[str]:
    """Mistakes in the findings of a group whose members use one client."""
    if history.uses_consumer_protocol and table.PROTOCOL not in TABLE[client]:
        return
    for row in in_words_of(history, client):
        about = f"{row['finding']} to {client}"
        for where in ("title", "text", "advice", "setting"):
            if names := foreign(row[where] or "", client):
                yield f"{about}: {where} has {names}: {row[where]}"
        if history.uses_consumer_protocol:
            # Kafka: KIP-848. The broker, or the group's configuration, sets both for its members.
            for setting in (table.SESSION_TIMEOUT, table.HEARTBEAT_INTERVAL):
                if row["setting"] == TABLE[client][setting].name:
                    yield f"{about}: {row['setting']} is not for members of the consumer protocol to set"
        else:
            yield from (f"{about}: {each}" for each in _wrong_values(row["advice"] or "", client))


_VALUE: Final = re.compile(r" (?:to|above|at least) (\d+(?:\.\d+)?)(\*time\.\w+| \(seconds\)| \(\d[^)]*\))")
_KINDS: Final = {table.MS: " (", table.S: " (seconds)", table.DURATION: "*time."}


def _wrong_values(advice: str, client: str) -> Iterator[str]:
    unit = TABLE[client][table.SESSION_TIMEOUT].unit
    for number, said in _VALUE.findall(advice):
        if not said.startswith(_KINDS[unit]) or (unit == table.S) != (said == " (seconds)"):
            yield f"{number}{said} is not in {unit}"


@contextmanager
def histories() -> Iterator[list[GroupHistory]]:
    """The groups that are judged meanwhile, in this process."""
    found: list[GroupHistory] = []

    def judged(history: GroupHistory) -> list[Finding]:
        found.append(history)
        return judge(history)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "judge", judged)
        yield found


@pytest.fixture(scope="module")
def of_the_gallery(gallery_report: Path) -> list[GroupHistory]:
    """The groups of the gallery; each rule that speaks of journals finds something there."""
    folder = gallery_report / "out" / "tables"
    columns = {**schemas.TABLES, "events": schemas.EVENTS}
    read = {name: pq.read_table(folder / name).select(columns[name].names).cast(columns[name]) for name in NEEDED}
    with histories() as found:
        findings_of(read.__getitem__, read["events"])
    return found


@pytest.fixture(scope="module")
def of_public_logs() -> list[GroupHistory]:
    """The groups of excerpts of logs as people post them."""
    with histories() as found:
        for log in sorted((GOLDEN / "public-logs").glob("*.log")):
            source = open_source(log)
            for group in source.groups():
                source.story(group.group_id)
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_no_finding_names_a_setting_of_another_client(client: str, of_the_gallery: list[GroupHistory]) -> None:
    assert [each for history in of_the_gallery for each in check(history, client)] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_no_excerpt_leads_to_a_setting_of_another_client(client: str, of_public_logs: list[GroupHistory]) -> None:
    assert [each for history in of_public_logs for each in check(history, client)] == []


@pytest.mark.parametrize("clients", list(itertools.combinations(CLIENTS, 2))[::3])
def test_a_group_of_two_clients_gets_the_names_of_both(
    clients: tuple[str, str], of_public_logs: list[GroupHistory]
) -> None:
    for history in of_public_logs:
        history.__dict__["known_clients"] = clients
        for row in rows_of(history):
            both = set.intersection(*(foreign(row["advice"] or "", client) for client in clients))
            assert both == set(), (clients, row)


_LEAVES: Final = re.compile(r"left the group|LeaveGroup of|let (?:them|it) close")


def test_a_static_member_is_not_said_to_leave(of_public_logs: list[GroupHistory]) -> None:
    """Kafka: KIP-345. It stops its heartbeats, and is removed when its session ends."""
    named, late = "payments-1", []
    for history in of_public_logs:
        static = replace(
            history,
            sessions=[replace(each, group_instance_id=named) for each in history.sessions],
            events=[replace(each, group_instance_id=named) for each in history.events],
        )
        late += [row for row in rows_of(static) if row["finding"] in ("max-poll-exceeded", "fell-silent")]
    assert {row["finding"] for row in late} == {"max-poll-exceeded", "fell-silent"}
    assert [row for row in late if _LEAVES.search(f"{row['text']} {row['advice']}")] == []


def test_a_member_of_the_consumer_protocol_is_not_told_to_set_its_session_timeout() -> None:
    """Kafka: KIP-848. Its own log shows the protocol by the heartbeat that was refused."""
    log = GOLDEN / "public-logs" / "java-async-thrown-out.log"
    (expired,) = open_source(log).story("bills").findings
    assert expired["finding"] == "session-expired"
    assert expired["setting"] == "group.consumer.session.timeout.ms"
    assert "consumer.session.timeout.ms" in expired["advice"]
    assert re.search(r"(?<![\w.])session\.timeout\.ms", f"{expired['text']} {expired['advice']}") is None


def test_a_default_is_that_of_the_version_that_the_log_states(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text(
        "%7|1700000000.100|INIT|rdkafka#consumer-1| [thrd:app]: librdkafka v1.6.2 (0x10602ff) rdkafka#consumer-1 "
        "initialized (builtin.features gzip,snappy, GCC GXX, debug 0x2000)\n"
        "%5|1700000400.100|SESSTMOUT|rdkafka#consumer-1| [thrd:main]: Consumer group session timed out (in join-state "
        "steady) after 10023 ms without a successful response from the group coordinator (broker 1, last error was "
        "Success): revoking assignment and rejoining group\n"
    )
    source = open_source(log)
    (group,) = source.groups()
    (expired,) = source.story(group.group_id).findings
    assert expired["advice"].endswith("Only then raise session.timeout.ms (10 s by default in 1.6.2).")


@pytest.mark.parametrize("bug", [each for each in BUGS if each.software != BROKER], ids=lambda bug: bug.name)
def test_the_cure_of_a_known_bug_is_one_of_its_own_client(bug: KnownBug) -> None:
    client = {"java": "Java", "kafkajs": "KafkaJS"}.get(bug.software, bug.software)
    assert foreign(f"{bug.cure} {bug.setting or ''}", client) == set()


def test_each_setting_that_a_rule_names_is_in_the_table_or_a_broker_s() -> None:
    """Names in the texts of rules, by the look of them."""
    known = {*table.SETTINGS, *(Settings.model_fields[each].alias or each for each in Settings.model_fields), *OTHERS}
    found = {
        (file.name, name)
        for file in sorted(RULES.rglob("*.py"))
        if file.name != "table.py" or file.parent.name != "clients"
        for text in _texts(file)
        for name in _DOTTED.findall(text)
    }
    assert found
    assert [each for each in found if each[1] not in known] == []


RULES: Final = Path(rejoin.pipeline.findings.__file__).parent
_DOTTED: Final = re.compile(r"(?<![\w./-])[a-z]+(?:\.[a-z]+)+(?![\w/(])")
OTHERS: Final = (
    *("consumer.session.timeout.ms", "config.storage.topic", "bootstrap.servers", "client.id"),
    *("worker.unsync.backoff.ms", "scheduled.rebalance.max.delay.ms", "consumer.crash"),
    *("server.log", "segment.bytes", "log.cleaner.enable"),
    *("num.standby.replicas", "streams.num.standby.replicas", "state.dir"),
    *("share.auto.offset.reset", "share.record.lock.duration.ms"),
    *("org.apache.kafka.clients.consumer", "java.util.regex"),
)
"""Configurations of groups, brokers, Connect and Streams beyond the emulator's; files, classes and events."""


def _texts(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("client", CLIENTS)
def test_members_that_list_another_assignor_get_a_way_that_their_client_has(
    client: str, of_the_gallery: list[GroupHistory]
) -> None:
    rows = {row["finding"]: row for history in of_the_gallery for row in in_words_of(history, client)}
    advice = rows["half-migrated-assignor"]["advice"]
    assert ("no cooperative assignor" in advice) == (client not in table.COOPERATIVE_ASSIGNOR)
    assert "both assignors" not in advice or client in table.COOPERATIVE_ASSIGNOR


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_lists_one_assignor_is_not_to_list_two(client: str) -> None:
    history = GroupHistory(RunContext("r", 0, 1), "bills")
    history.__dict__["known_clients"] = (client,)
    lists_one = client in (table.STREAMS, table.BROD, table.RUBY_KAFKA)
    assert ("lists one assignor" in agree_on_an_assignor(history)) == lists_one
