"""Why readers of committed records wait, and why producers lose transactions: each with the setting that ends it.

Findings about transactions have no group: the groups that wait, or whose offsets are committed, are in ``groups``.
Their costs are consumer-seconds, too: how long readers of a partition were held back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import at_least, count, names, period, span, times
from rejoin.pipeline.findings.phrases import value
from rejoin.pipeline.transactions.audits import CLEANUP_MS, HANGING, HELD, ZOMBIE, evidence_of, violations_of
from rejoin.pipeline.transactions.histories import day_of

Row = Mapping[str, Any]

HANGING_TRANSACTION: Final = "hanging-transaction"
HELD_UP: Final = "read-committed-held-up"
TIMED_OUT: Final = "transaction-timed-out"
SHARED_ID: Final = "transactional-id-shared"
FENCED: Final = "producer-fenced"
NAMES: Final = (HANGING_TRANSACTION, SHARED_ID, TIMED_OUT, HELD_UP, FENCED)

HELD_FROM_MS: Final = 30_000
"""Readers that wait for less are not worth a finding."""
TAKEOVERS: Final = 2
"""So many times two instances take a transactional id from each other before it is more than a restart."""
MARKERS_FROM_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TransactionsOfRun:
    """Rows of one run that the rules look at."""

    run_id: str
    transactions: Sequence[Row]
    """Transactions that :func:`rejoin.pipeline.transactions.audits.is_suspicious` keeps."""
    producers: Sequence[Row]
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Topic to the groups that read it."""
    rebalances: Sequence[Row] = ()
    """Of the groups whose offsets are committed: ``group_id, prepared_at_ms, ended_at_ms``."""

    def waiting(self, topics: Iterable[str]) -> list[str]:
        """The groups that read topics, and may wait if they read what is committed only."""
        return sorted({group for topic in topics for group in self.readers.get(topic, ())})


def findings_of(run: TransactionsOfRun) -> list[dict[str, Any]]:
    """Rows of the table ``findings`` about transactions."""
    found = [*_hanging(run), *_shared_ids(run), *_timed_out(run), *_held_up(run), *_fenced(run)]
    return [
        {
            "run_id": run.run_id,
            "day": None if each.from_ms is None else day_of(each.from_ms),
            "group_id": None,
            **each.row(),
            "groups": groups,
            "transactional_ids": ids,
        }
        for each, groups, ids in found
    ]


Found = tuple[Finding, list[str], list[str]]
"""A finding, the groups and the transactional ids that it is about."""


def _hanging(run: TransactionsOfRun) -> Iterator[Found]:
    """A transaction that is open in a log while no coordinator will ever end it."""
    for row in run.transactions:
        if row["coordinated"] is not False:
            continue
        for bad in violations_of([row]):
            if bad["kind"] not in (HANGING, ZOMBIE):
                continue
            where = f"{bad['topic']}-{bad['partition']}"
            groups = run.waiting([bad["topic"]])
            offset = next(log["first_offset"] for log in row["logs"])
            ended = row["ended_at_ms"] is not None
            zombie = " It is of a fenced epoch: a zombie wrote it." if row["fenced"] else ""
            fate = (
                f"A later marker of the same producer ended it after {span(bad['found'])}: its records count with a "
                "transaction that they are no part of."
                if ended
                else f"The last stable offset stands at {offset}, and no timeout will move it."
            )
            yield (
                Finding(
                    HANGING_TRANSACTION,
                    f"A transaction hangs on {where}, at offset {offset}"
                    + (f": {names(groups)} cannot read on" if groups and not ended else ""),
                    f"Producer {row['producer_id']} (epoch {row['producer_epoch']}"
                    f"{', ' + row['transactional_id'] if row['transactional_id'] else ''}) began a transaction on "
                    f"{where} {period(bad['at_ms'], bad['at_ms'])} that its coordinator does not know of: a batch came "
                    f"after the end of its transaction.{zombie} {fate}{_who(groups)}",
                    max(1, len(groups)) * bad["found"] / 1_000,
                    bad["at_ms"],
                    bad["at_ms"] + bad["found"],
                    setting="transaction.version",
                    advice="set to 2 (kafka-features.sh upgrade --feature transaction.version=2, clients from 4.0 on): "
                    "then each batch is verified, and a late one is refused (KIP-890). Until then leave "
                    "transaction.partition.verification.enable at true."
                    + (
                        ""
                        if ended
                        else f" End this one: kafka-transactions.sh abort --topic {bad['topic']} --partition "
                        f"{bad['partition']} --start-offset {offset}"
                    ),
                    numbers={"held_ms": bad["found"], "first_offset": offset, "groups": len(groups)},
                    evidence=[evidence_of(row)],
                    exact=row["confidence"] == "exact",
                    severity=HIGH,
                ),
                groups,
                [row["transactional_id"]] if row["transactional_id"] else [],
            )


def _who(groups: Sequence[str]) -> str:
    if not groups:
        return ""
    reads = "reads" if len(groups) == 1 else "read"
    return f" {names(groups)} {reads} this topic: with isolation.level=read_committed nothing behind it is seen."


def _shared_ids(run: TransactionsOfRun) -> Iterator[Found]:
    """Two instances with one transactional id fence each other again and again."""
    for row in _by_id(run.producers):
        if not _is_shared(row):
            continue
        groups = list(row["groups"])
        yield (
            Finding(
                SHARED_ID,
                f"Two instances share transactional.id {row['transactional_id']}: they fence each other",
                f"{row['transactional_id']} was initialized {times(row['initializations'])} {_when(row)}, and "
                f"{count(row['fenced_requests'], 'request')} with an older epoch were refused. Each InitProducerId "
                f"fences the instance that had the id before; {count(row['fenced_out'], 'open transaction')} "
                "were aborted by that.",
                row["fenced_out"] * (row["p50_ms"] or 0) / 1_000,
                row["first_at_ms"],
                row["last_at_ms"],
                setting="transactional.id",
                advice="give each instance its own, and the same one after a restart, such as the name of the "
                "application with the ordinal of the pod. One process per instance has to be alive.",
                numbers={name: row[name] for name in ("initializations", "fenced_requests", "fenced_out")},
                members=[row["transactional_id"]],
                exact=row["confidence"] == "exact",
                severity=HIGH,
            ),
            groups,
            [row["transactional_id"]],
        )


def _is_shared(row: Row) -> bool:
    """Whether instances took the id from each other: more takeovers than timeouts explain."""
    takeovers = row["fenced_requests"] - row["timed_out"]
    return row["initializations"] > TAKEOVERS and takeovers >= TAKEOVERS and row["transactional_id"] is not None


def _timed_out(run: TransactionsOfRun) -> Iterator[Found]:
    """Transactions that took longer than their timeout: their work is lost and done again."""
    late: dict[str, list[Row]] = defaultdict(list)
    for row in run.transactions:
        if row["ended_by"] == "timeout" and row["transactional_id"]:
            late[row["transactional_id"]].append(row)
    producers = {row["transactional_id"]: row for row in _by_id(run.producers)}
    for name, rows in sorted(late.items()):
        producer = producers.get(name)
        if producer is None:
            continue
        timeout_ms = producer["transaction_timeout_ms"] or 0
        first_ms = rows[0]["ended_at_ms"] if rows[0]["started_at_ms"] is None else rows[0]["started_at_ms"]
        cause, setting, advice = _why_late(run, producer, rows, timeout_ms)
        lost = count(len(rows), "transaction")
        limit = f" ({span(timeout_ms)})" if timeout_ms else ""
        held_ms = sum(row["held_ms"] or row["open_ms"] or 0 for row in rows)
        groups = list(producer["groups"])
        yield (
            Finding(
                TIMED_OUT,
                f"{lost} of {name} aborted after transaction.timeout.ms{limit}",
                f"The coordinator aborted {len(rows):,} of {count(producer['transactions'], 'transaction')} of {name} "
                f"{period(first_ms, rows[-1]['ended_at_ms'])}, since they were open for longer than "
                f"{span(timeout_ms) if timeout_ms else 'their timeout'}. {cause}",
                max(1, len(groups)) * held_ms / 1_000,
                first_ms,
                rows[-1]["ended_at_ms"],
                setting=setting,
                advice=advice,
                numbers={
                    "timed_out": len(rows),
                    "transactions": producer["transactions"],
                    "transaction_timeout_ms": timeout_ms,
                    "held_ms": held_ms,
                },
                members=[name],
                evidence=[evidence_of(row) for row in rows],
                exact=all(row["confidence"] == "exact" for row in rows),
                severity=MEDIUM if len(rows) < 3 else HIGH,
            ),
            groups,
            [name],
        )


def _why_late(run: TransactionsOfRun, producer: Row, rows: Sequence[Row], timeout_ms: int) -> tuple[str, str, str]:
    """The cause of the delay, as far as it is known, the setting, and the value to set."""
    longest = max((_overlap(each, rows) for each in run.rebalances), default=0)
    if 2 * longest >= timeout_ms > 0:
        return (
            f"A rebalance of its group took {span(longest)} of that: a consumer that waits for its assignment "
            "commits nothing.",
            "transaction.timeout.ms",
            f"set to {value(at_least(max(2 * longest, timeout_ms + longest)))}, above what a rebalance takes "
            "(max.poll.interval.ms bounds it); or let rebalances be shorter: static members, cooperative-sticky.",
        )
    if not timeout_ms:
        # Brokers' logs have neither the timeout nor when a transaction began.
        return (
            "What it did meanwhile is not in the logs.",
            "transaction.timeout.ms",
            "set it above what the work within a transaction takes, or do less in one (max.poll.records); where its "
            "process had died, a lower one lets readers of committed records wait less.",
        )
    back = producer["fenced_requests"] > 0 or producer["last_at_ms"] > (rows[-1]["ended_at_ms"] or 0) + CLEANUP_MS
    if not back:
        return (
            "It was not seen after that: its process died, or was cut off, in the middle of a transaction.",
            "transaction.timeout.ms",
            f"{value(timeout_ms)} is how long readers of committed records wait for a producer that is dead; set it "
            "as low as the longest transaction allows.",
        )
    usual = f" Half of its transactions take {span(producer['p50_ms'])}." if producer["p50_ms"] is not None else ""
    return (
        f"It came back and was fenced: what it does within a transaction takes longer.{usual}",
        "transaction.timeout.ms",
        f"set to {value(at_least(2 * timeout_ms))} (no more than the broker's transaction.max.timeout.ms), or do less "
        "in one transaction: a smaller max.poll.records, and no slow calls between begin and commit.",
    )


def _overlap(rebalance: Row, rows: Iterable[Row]) -> int:
    """For how much of these transactions a rebalance was under way."""
    begin, end = rebalance["prepared_at_ms"], rebalance["ended_at_ms"]
    if begin is None or end is None:
        return 0
    return max(
        (
            min(end, row["started_at_ms"] + row["open_ms"]) - max(begin, row["started_at_ms"])
            for row in rows
            if row["started_at_ms"] is not None
        ),
        default=0,
    )


def _held_up(run: TransactionsOfRun) -> Iterator[Found]:
    """Readers of committed records wait long for transactions that end in the end, or for markers."""
    kept: dict[str, list[Row]] = defaultdict(list)
    for row in run.transactions:
        if row["coordinated"] is not False and row["ended_by"] != "timeout" and (row["held_ms"] or 0) >= HELD_FROM_MS:
            kept[row["transactional_id"] or f"producer {row['producer_id']}"].append(row)
    for name, rows in sorted(kept.items()):
        worst = max(rows, key=lambda row: row["held_ms"])
        topics = {log["topic"] for row in rows for log in row["logs"] if log["opened_at_ms"] is not None}
        groups = run.waiting(topics)
        late_markers = (worst["markers_ms"] or 0) >= max(MARKERS_FROM_MS, (worst["open_ms"] or 0))
        if late_markers:
            cause = (
                f"Its end was decided after {span(worst['open_ms'] or 0)}; the last marker came "
                f"{span(worst['markers_ms'])} later: a leader of its partitions could not be reached."
            )
            setting, advice = None, "see to the brokers that lead its partitions; markers are sent until they answer."
        else:
            cause = f"It was open for {span(worst['open_ms'] or 0)} before its producer ended it."
            setting = "transaction.timeout.ms"
            advice = (
                "commit more often (commit.interval.ms of Kafka Streams, fewer records in a transaction), and set it "
                f"below {value(at_least(worst['held_ms']))}, so that a stuck producer does not hold readers for longer."
            )
        bad = any(each["kind"] == HELD for row in rows for each in violations_of([row]))
        yield (
            Finding(
                HELD_UP,
                f"Readers of committed records waited up to {span(worst['held_ms'])} for {name}",
                f"{count(len(rows), 'transaction')} of {name} held the last stable offset of {names(sorted(topics))} "
                f"for {span(HELD_FROM_MS)} or longer. {cause}{_who(groups)}",
                max(1, len(groups)) * sum(row["held_ms"] for row in rows) / 1_000,
                min(row["started_at_ms"] or 0 for row in rows),
                max((row["started_at_ms"] or 0) + row["held_ms"] for row in rows),
                setting=setting,
                advice=advice,
                numbers={
                    "transactions": len(rows),
                    "held_ms": worst["held_ms"],
                    "markers_ms": worst["markers_ms"] or 0,
                },
                members=[name],
                evidence=[evidence_of(row) for row in rows],
                exact=all(row["confidence"] == "exact" for row in rows),
                severity=HIGH if bad else MEDIUM,
            ),
            groups,
            [row["transactional_id"] for row in rows[:1] if row["transactional_id"]],
        )


def _fenced(run: TransactionsOfRun) -> Iterator[Found]:
    """An instance went on after another one had taken its transactional id: a zombie, and it was refused."""
    for row in _by_id(run.producers):
        refused = row["fenced_requests"]
        if not refused or _is_shared(row) or row["timed_out"]:
            continue
        name = row["transactional_id"] or f"producer {row['producer_id']}"
        yield (
            Finding(
                FENCED,
                f"A zombie of {name} was fenced",
                f"{count(refused, 'request')} of an older instance of {name} were refused, as a newer one had "
                f"initialized the id. Nothing that it wrote after that is visible to readers of committed records.",
                0.0,
                row["first_at_ms"],
                row["last_at_ms"],
                setting="transactional.id",
                advice="nothing is lost. Where this comes again, see to it that an instance is stopped before its "
                "successor starts, and that it ends on ProducerFencedException.",
                numbers={"fenced_requests": refused, "initializations": row["initializations"]},
                members=[name],
                exact=row["confidence"] == "exact",
                severity=LOW,
            ),
            list(row["groups"]),
            [row["transactional_id"]] if row["transactional_id"] else [],
        )


def _by_id(producers: Iterable[Row]) -> list[Row]:
    """Producers by transactional id; producer ids that took over from each other are one."""
    found: dict[str, dict[str, Any]] = {}
    for row in producers:
        name = row["transactional_id"] or f"producer {row['producer_id']}"
        known = found.setdefault(name, dict(row))
        if known["producer_id"] != row["producer_id"]:
            for each in ("initializations", "transactions", "fenced_requests", "timed_out", "fenced_out"):
                known[each] += row[each]
            known["last_at_ms"] = max(known["last_at_ms"], row["last_at_ms"])
    return list(found.values())


def _when(row: Row) -> str:
    return period(row["first_at_ms"], row["last_at_ms"])
