"""What brokers' logs say of transactions: every line in every version, a recorded log, and what comes of it."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

import pytest

from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.journal.events.transactions import ProducerIdInitialized
from rejoin.journal.kafka_logs.template import VERSIONS, Template, Version
from rejoin.journal.kafka_logs.transactions import EXCEPTIONS, PREFIXES, TRANSACTION_LINES, transaction_line
from rejoin.pipeline.reading.broker_logs.messages import read_transaction_message
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.transactions.audits import is_suspicious
from rejoin.pipeline.transactions.findings import TransactionsOfRun, findings_of
from rejoin.pipeline.transactions.histories import COLUMNS, READ, tables_of
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.transactions.producer import Producer
from tests.paths import RECORDED
from tests.pipeline.reading.broker_logs.reconstructed import reconstruct
from tests.pipeline.transactions import lives
from tests.pipeline.transactions.lives import RecordedNode
from tests.suite.cases import for_each

SERVER_LOG = RECORDED / "transaction-logs" / "server.log"
VALUES = {
    "transactional_id": "orders: a's id",
    "producer_id": "4000",
    "producer_epoch": "3",
    "current_epoch": "5",
    "partition": "49",
    "coordinator_epoch": "12",
    "records": "7",
    "load_ms": "17",
    "scheduler_ms": "1",
    "topic": "orders-eu",
    "number": "3",
    "offset": "120",
    "error": "NOT_LEADER_OR_FOLLOWER",
}


def rows(table: tuple[Template, ...]) -> list[tuple[Template, Version]]:
    return [(template, version) for template in table for version in VERSIONS if template.is_in(version)]


def name(row: tuple[Template, Version]) -> str:
    template, version = row
    return f"{template.kind}-{template.variant}-{version}"


@for_each("template, version", rows(TRANSACTION_LINES), ids=name)
def test_a_line_is_read_as_it_was_written(template: Template, version: Version) -> None:
    exception = transaction_line("txn_fenced", version)
    assert exception is not None
    is_refusal = template.kind == "txn_append_refused"
    text = PREFIXES[template.logger].format(node="1") + template.format(version, VALUES)
    found = read_transaction_message(text, [exception.format(version, VALUES)] if is_refusal else [])
    assert found is not None
    fields = {*template.fields(version), *(exception.fields(version) if is_refusal else ())}
    assert (found.kind, found.values) == (template.kind, {field: VALUES[field] for field in fields} | {"node": "1"})


def test_every_version_has_one_exception_for_a_fenced_producer() -> None:
    assert all(sum(each.is_in(version) for each in EXCEPTIONS) == 1 for version in VERSIONS)


def events_of(log: bytes) -> list[dict[str, Any]]:
    """The events of a log, each with all that tables of transactions read."""
    statements = [
        each for each in LogFile("server.log", "?").statements(io.BytesIO(log)) if isinstance(each, Statement)
    ]
    found = [event for event in reconstruct(statements) if event["event"] in READ]
    numbered = [{**event, "run_id": "logs", "source": "broker-log", "seq": n} for n, event in enumerate(found)]
    return [{column: defaultdict(lambda: None, event)[column] for column in COLUMNS} for event in numbered]


def test_a_recorded_log() -> None:
    events = events_of(SERVER_LOG.read_bytes())
    assert [
        (each["event"], each["transactional_id"], each["producer_id"], each["producer_epoch"]) for each in events
    ] == [
        ("producer_id_initialized", "payments-1", 0, 0),
        ("producer_id_initialized", "payments-1", 0, 2),
        ("producer_id_initialized", "payments-2", 1, 0),
        ("transaction_completed", "payments-2", 1, 0),
    ]
    tables = tables_of(events, {"logs": events[-1]["at_ms"]})
    late = [row for row in tables["transactions"] if is_suspicious(row)]
    (finding,) = findings_of(TransactionsOfRun("logs", late, tables["producers"]))
    assert finding["title"] == "1 transaction of payments-2 aborted after transaction.timeout.ms"
    assert finding["setting"] == "transaction.timeout.ms"


@pytest.mark.parametrize("version", [(2, 0), (2, 4), (2, 7), (3, 8), (4, 0)], ids=str)
def test_what_a_node_would_log_is_what_its_journal_says(version: Version) -> None:
    node = RecordedNode(transaction_partition_verification_enable=False)
    lives.too_slow(node)
    lives.zombie(node)
    late = Producer(node, lives.ID)
    late.use(0, 0)
    assert late.produce(11) is ErrorCode.INVALID_PRODUCER_EPOCH
    log = BrokerLog(version, 1, 50)
    lines = [line for at, event in node.timed for line in log.lines(event, at)]
    found = events_of("".join(line + "\n" for line in lines).encode())
    kinds = [(each["event"], each["transactional_id"], each["producer_epoch"]) for each in found]
    assert [each for each in kinds if each[0] == "producer_id_initialized"] == [
        ("producer_id_initialized", event.transactional_id, event.producer_epoch)
        for _, event in node.timed
        if isinstance(event, ProducerIdInitialized)
    ]
    assert sum(each[0] == "transaction_completed" for each in kinds) == 3
    (refused,) = [each for each in found if each["event"] == "producer_fenced" and each["topic"] == "t"]
    assert (refused["producer_epoch"], refused["partition"]) == (0, 0)
    assert refused["producer_id"] == (0 if version >= (2, 8) else None)
