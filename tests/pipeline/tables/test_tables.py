"""Each table on a handful of events written by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rejoin.pipeline import schemas
from rejoin.pipeline.tables.client_metrics import client_metrics
from rejoin.pipeline.tables.commits import commits
from rejoin.pipeline.tables.group_tables import balance, member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import progress, ranges_by_partition, records
from rejoin.pipeline.tables.requests import requests
from rejoin.pipeline.tables.streams import streams
from tests.pipeline.events import consumer, coordinator, events_here
from tests.pipeline.tables.scenes import CLIENT_METRICS, A, B, C, completed, ended, own, started

Events = list[dict[str, Any]]
SCENES: dict[str, Events] = {}
"""Events by hand, each list a run of its own. All tables are made of all of them at once."""


def events_of_scenes() -> pa.Table:
    """All of them. :mod:`tests.pipeline.report.test_small_reports` makes tables of them on Spark, too."""
    return events_here({"run_id": scene, **event} for scene, events in SCENES.items() for event in events)


class Tables:
    """Each table, made when it is first asked for."""

    def __init__(self) -> None:
        self.events = events_of_scenes()
        self._rebalances = rebalances(self.events)
        self._ranges = ranges_by_partition(self.events)
        self._tables: dict[str, pa.Table] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def table(self, name: str) -> pa.Table:
        if name not in self._tables:
            make = {
                "rebalances": lambda: self._rebalances,
                "member_sessions": lambda: member_sessions(self.events, self._rebalances),
                "pauses": lambda: pauses(self.events, self._rebalances),
                "ownership": lambda: ownership(self.events),
                "balance": lambda: balance(self.events),
                "client_metrics": lambda: client_metrics(self.events, self._rebalances),
                "commits": lambda: commits(self.events),
                "records": lambda: records(self._ranges),
                "progress": lambda: progress(self._ranges),
                "requests": lambda: requests(self.events),
                "streams": lambda: streams(self.events),
            }
            self._tables[name] = make[name]()
        return self._tables[name]

    def rows(self, name: str, scene: str, *columns: str) -> list[tuple[Any, ...]]:
        """What a table says of a scene, ordered by these columns."""
        if name not in self._rows:
            self._rows[name] = self.table(name).to_pylist(maps_as_pydicts="strict")
        mine = [tuple(row[column] for column in columns) for row in self._rows[name] if row["run_id"] == scene]
        return sorted(
            mine, key=lambda row: [(value is not None, value if not isinstance(value, dict) else 0) for value in row]
        )


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


SCENES["joins and leaves"] = [
    coordinator(0, "member_joined", member_id=A, client_id="a", state="Empty", session_timeout_ms=6_000),
    started(0, 0, "join-new", A, [A], previous_state="Empty", initial=True),
    ended(3_000, 1, [A], join_ms=3_000),
    coordinator(3_010, "assignment_received", generation=1, leader=A),
    completed(3_020, 1, [], [A], owned_before=[], owned_after=own(A, 0, 1), moved=0, regained=2, join_ms=3_000),
    # b comes, and before that is done, c.
    coordinator(10_000, "member_joined", member_id=B, client_id="b", state="Stable", session_timeout_ms=6_000),
    started(10_000, 1, "join-new", B, [A, B]),
    coordinator(10_400, "member_rejoined", member_id=A, state="PreparingRebalance"),
    ended(10_400, 2, [A, B], join_ms=400),
    coordinator(10_500, "member_joined", member_id=C, client_id="c", state="CompletingRebalance"),
    started(10_500, 2, "join-new", C, [A, B, C], previous_state="CompletingRebalance"),
    coordinator(10_600, "member_rejoined", member_id=B, state="PreparingRebalance"),
    coordinator(10_900, "member_rejoined", member_id=A, state="PreparingRebalance"),
    ended(10_900, 3, [A, B, C], join_ms=400),
    coordinator(10_950, "assignment_received", generation=3, leader=A),
    completed(
        11_000, 3, [A], [A, B, C], owned_before=own(A, 0, 1), owned_after=[*own(A, 0), *own(B, 1)], moved=1, regained=0,
        previous_leader=A, join_ms=400, sync_ms=100,
    ),
    # b and c leave one after the other, a dies much later.
    coordinator(200_000, "member_removed", member_id=B, client_id="b", cause="left", state="Stable"),
    started(200_000, 3, "leave", B, [A, C]),
    coordinator(200_300, "member_removed", member_id=C, client_id="c", cause="left", state="PreparingRebalance"),
    coordinator(260_000, "member_removed", member_id=A, cause="session-expiry", state="PreparingRebalance"),
    coordinator(260_000, "group_emptied", generation=4),
]  # fmt: skip


def test_rebalances_with_causes_phases_members_and_outcomes(tables: Tables) -> None:
    def rows(*columns: str) -> list[tuple[Any, ...]]:
        return tables.rows("rebalances", "joins and leaves", "number", *columns)

    assert rows("outcome", "cause", "attempt", "episode", "unavailable_ms", "ended_at_ms") == [
        (1, "completed", "join-new", 1, 1, 3_020, 3_020),
        (2, "superseded", "join-new", 1, 2, 500, 10_500),
        (3, "completed", "join-new", 2, 2, 500, 11_000),
        (4, "emptied", "leave", 1, 4, 60_000, 260_000),
    ]
    assert rows("joined", "left", "evicted", "members_before", "members_after") == [
        (1, [A], [], [], [], [A]),
        (2, [B], [], [], [A], [A, B]),
        (3, [C], [], [], [A], [A, B, C]),
        (4, [], [B, C], [A], [A, C], None),
    ]
    assert rows("moved", "stickiness", "leader_changed", "join_ms", "sync_ms") == [
        (1, 0, None, None, 3_000, 20),
        (2, None, None, None, 400, None),
        (3, 1, 0.5, False, 400, 100),
        (4, None, None, None, None, None),
    ]
    assert rows("slowest_member_id", "slowest_ms", "members_waiting_ms")[1:3] == [(2, A, 400, 400), (3, A, 400, 700)]
    assert rows("chain", "chain_length") == [(1, 1, 3), (2, 1, 3), (3, 1, 3), (4, 4, 1)]


SCENES["failover"] = [
    started(1_000, 1, "leave", B, [A]),
    coordinator(2_500, "group_loaded", node="n2", state="Stable", generation=1, members=[A, B]),
    started(3_000, 1, "session-expiry", B, [A], node="n2"),
    started(0, 4, "leave", B, [A], group_id="other"),
    coordinator(700, "group_state_changed", state="Dead", generation=4, group_id="other"),
]


def test_a_coordinator_that_goes_aborts_and_one_that_is_still_at_it_is_open(tables: Tables) -> None:
    assert tables.rows("rebalances", "failover", "group_id", "node", "outcome", "ended_at_ms", "number") == [
        ("g", "n1", "aborted", 2_500, 1),
        ("g", "n2", "open", None, 2),
        ("other", "n1", "aborted", 700, 1),
    ]


SCENES["all at once"] = [{**event, "at_ms": 5} for event in SCENES["joins and leaves"]]


def test_equal_instants_are_ordered_by_number(tables: Tables) -> None:
    columns = ("number", "outcome", "joined", "left", "unavailable_ms")
    assert tables.rows("rebalances", "all at once", *columns) == [
        (1, "completed", [A], [], 0),
        (2, "superseded", [B], [], 0),
        (3, "completed", [C], [], 0),
        (4, "emptied", [], [B, C], 0),
    ]


SCENES["only owners"] = [
    started(0, 1, "leave", C, [A, B], confidence="inferred"),
    completed(
        50, 2, [A, B, C], [A, B], owned_before=[*own(A, 0, 1), *own(B, 2), *own(C, 3)],
        owned_after=[*own(A, 0), *own(B, 1, 2, 3)], confidence="inferred",
    ),
]  # fmt: skip


def test_what_moved_where_the_source_says_only_who_owned_what(tables: Tables) -> None:
    [row] = tables.rows("rebalances", "only owners", "moved", "regained", "stickiness", "confidence")
    assert row == (1, 1, pytest.approx(2 / 3), "inferred")


STATIC: dict[str, Any] = {"group_instance_id": "s", "state": "Empty"}
SCENES["static"] = [
    coordinator(270_000, "member_joined", member_id="s-1", client_id="s", session_timeout_ms=9_000, **STATIC),
    coordinator(280_000, "static_member_replaced", member_id="s-2", other_member_id="s-1", rebalance=False, **STATIC),
    coordinator(290_000, "member_removed", member_id="s-2", cause="session-expiry", **STATIC),
    coordinator(294_000, "member_joined", member_id="s-3", client_id="s", session_timeout_ms=9_000, **STATIC),
    coordinator(300_000, "partition_elected", group_id=None),
]


def test_member_sessions(tables: Tables) -> None:
    columns = (
        "member_id",
        "end",
        "session_ms",
        "rejoins",
        "caused",
        "first_generation",
        "last_generation",
        "generations",
    )
    assert tables.rows("member_sessions", "joins and leaves", *columns) == [
        (A, "session-expiry", 260_000, 2, 1, 1, 3, 3),
        (B, "left", 190_000, 1, 2, 2, 3, 2),
        (C, "left", 189_800, 0, 1, 3, 3, 1),
    ]
    columns = (
        "member_id",
        "end",
        "session_ms",
        "replaces",
        "replaced_by",
        "away_ms",
        "previous_end",
        "session_timeout_ms",
    )
    assert tables.rows("member_sessions", "static", *columns) == [
        ("s-1", "replaced", 10_000, None, "s-2", None, None, 9_000),
        ("s-2", "session-expiry", 10_000, "s-1", None, 0, "replaced", 9_000),
        ("s-3", "open", 6_000, None, None, 4_000, "session-expiry", 9_000),
    ]


SCENES["pauses"] = [
    consumer("eager", 0, "partitions_assigned", 0, 1),
    consumer("eager", 100, "partitions_revoked", 0, 1),
    consumer("eager", 350, "partitions_assigned", 0),
    consumer("coop", 0, "partitions_assigned", 2, 3),
    consumer("coop", 100, "partitions_revoked", 3),
    consumer("coop", 160, "partitions_assigned"),
    # Lost, and then closed before anything came; and one that never had any.
    consumer("unlucky", 0, "partitions_assigned", 4),
    consumer("unlucky", 500, "partitions_lost", 4),
    consumer("unlucky", 900, "consumer_closed"),
    consumer("idle", 0, "partitions_assigned"),
    consumer("idle", 100, "partitions_revoked"),
    consumer("idle", 800, "partitions_assigned"),
]


def test_pauses_stop_the_world_or_not(tables: Tables) -> None:
    columns = ("client_id", "kind", "how", "pause_ms", "stopped_ms", "end", "given_up", "kept", "received")
    assert tables.rows("pauses", "pauses", *columns) == [
        ("coop", "incremental", "revoked", 60, 0, "assigned", 1, 1, 0),
        ("eager", "stop-the-world", "revoked", 250, 250, "assigned", 2, 0, 1),
        ("unlucky", "stop-the-world", "lost", 400, 400, "gone", 1, 0, None),
    ]


def test_pauses_where_only_the_coordinator_is_heard(tables: Tables) -> None:
    columns = ("member_id", "began_at_ms", "pause_ms", "confidence", "generation_to")
    # No member got anything back from the last one.
    assert tables.rows("pauses", "joins and leaves", *columns) == [(A, 10_000, 1_000, "inferred", 3)]


CONSUMER: dict[str, Any] = {"group_type": "consumer", "leader": None, "protocol": "uniform"}


def reached(at_ms: int, member_id: str, epoch: int) -> dict[str, Any]:
    return coordinator(at_ms, "member_reconciled", member_id=member_id, member_epoch=epoch)


SCENES["consumer group"] = [
    coordinator(0, "member_joined", member_id=A, state="Empty"),
    started(0, 1, "join-new", A, [A], previous_state="Empty", group_type="consumer"),
    coordinator(0, "target_assignment_computed", generation=2, protocol="uniform"),
    reached(0, A, 2),
    completed(0, 2, [], [A], owned_before=[], owned_after=own(A, 0, 1), moved=0, regained=2, **CONSUMER),
    # b comes, and before a has given up what is for b, c.
    coordinator(1_000, "member_joined", member_id=B, state="Stable"),
    started(1_000, 2, "join-new", B, [A, B], group_type="consumer"),
    coordinator(1_800, "target_assignment_computed", generation=3, protocol="uniform"),
    coordinator(3_000, "member_joined", member_id=C, state="Reconciling"),
    started(3_000, 3, "join-new", C, [A, B, C], previous_state="Reconciling", group_type="consumer"),
    coordinator(3_200, "member_removed", member_id=C, cause="left", state="Assigning"),
    coordinator(4_000, "target_assignment_computed", generation=5, protocol="uniform"),
    coordinator(
        5_000, "revocation_completed", member_id=A, member_epoch=5, revocation_ms=700,
        partitions=[{"topic": "t", "partition": 1}],
    ),
    reached(5_000, A, 5),
    reached(6_000, B, 5),
    completed(
        6_000, 5, [A], [A, B], owned_before=own(A, 0, 1), owned_after=[*own(A, 0), *own(B, 1)], moved=1, regained=0,
        **CONSUMER,
    ),
    reached(9_000, A, 5),
]  # fmt: skip


def test_a_rebalance_of_a_consumer_group_has_its_target_and_who_came_last(tables: Tables) -> None:
    def rows(*columns: str) -> list[tuple[Any, ...]]:
        return tables.rows("rebalances", "consumer group", "number", *columns)

    assert rows("outcome", "attempt", "generation_from", "generation_to", "unavailable_ms") == [
        (1, "completed", 1, 1, 2, 0),
        (2, "superseded", 1, 2, 3, 2_000),
        (3, "completed", 2, 3, 5, 3_000),
    ]
    assert rows("joined", "left", "join_ms", "sync_ms", "slowest_member_id", "slowest_ms") == [
        (1, [A], [], 0, 0, A, 0),
        (2, [B], [], 800, None, B, 0),
        (3, [C], [C], 1_000, 2_000, B, 3_000),
    ]
    assert rows("group_type", "protocol", "moved", "given_up", "revocation_ms")[1:] == [
        (2, "consumer", "uniform", None, 0, 0),
        (3, "consumer", "uniform", 1, 1, 700),
    ]


def test_in_a_consumer_group_only_those_stop_that_give_something_up(tables: Tables) -> None:
    columns = ("member_id", "kind", "began_at_ms", "stopped_ms", "given_up", "generation_to", "confidence")
    assert tables.rows("pauses", "consumer group", *columns) == [(A, "incremental", 4_300, 700, 1, 5, "exact")]


SCENES["nested"] = [
    coordinator(0, "topic_created", topic="t", partition_count=1, group_id=None),
    consumer("a", 5, "subscribing", topics=["t"]),
    consumer("a", 10, "partitions_assigned", 0),
    consumer("b", 400, "partitions_assigned", 0),
    consumer("b", 420, "partitions_revoked", 0),
    consumer("c", 900, "partitions_assigned", 0),
    consumer("a", 1_000, "partitions_lost", 0),
    consumer("c", 1_100, "partitions_revoked", 0),
    consumer("a", 1_150, "partitions_assigned", 0),
    coordinator(2_000, "partition_elected", group_id=None),
]


def test_ownership_with_gaps_and_overlaps(tables: Tables) -> None:
    columns = ("from_ms", "to_ms", "kind", "client_id", "end", "overlap_ms", "overlaps_owner")
    assert tables.rows("ownership", "nested", *columns) == [
        (5, 10, "gap", None, "initial", None, None),
        (10, 1_000, "owned", "a", "lost", 0, None),
        (400, 420, "owned", "b", "revoked", 20, "process-a/a"),
        (900, 1_100, "owned", "c", "revoked", 100, "process-a/a"),
        (1_100, 1_150, "gap", None, "between", None, None),
        (1_150, 2_000, "owned", "a", "open", 0, None),
    ]


SCENES["died"] = [
    coordinator(0, "member_joined", member_id="a-id", client_id="a", state="Empty", session_timeout_ms=6_000),
    consumer("a", 100, "partitions_assigned", 0, 1),
    coordinator(30_000, "member_removed", member_id="a-id", cause="session-expiry", state="Stable"),
    consumer("a", 40_000, "join_sent", member_id="", owned=[]),
    consumer("a", 41_000, "partitions_assigned", 0, member_id="a-id-2"),
    # No coordinator in the input missed this one.
    consumer("b", 100, "partitions_assigned", 2, group_id="unheard"),
    consumer("b", 9_000, "join_sent", member_id="", owned=[], group_id="unheard"),
]


def test_ownership_of_who_died_ends_when_the_coordinator_last_heard_of_it(tables: Tables) -> None:
    columns = ("kind", "group_id", "partition", "from_ms", "to_ms", "end", "confidence")
    assert [row[1:] for row in tables.rows("ownership", "died", *columns) if row[0] == "owned"] == [
        ("g", 0, 100, 24_000, "expired", "inferred"),
        ("g", 0, 41_000, 41_000, "open", "exact"),
        ("g", 1, 100, 24_000, "expired", "inferred"),
        ("unheard", 2, 100, 9_000, "gone", "inferred"),
    ]


def test_ownership_where_only_the_coordinator_is_heard(tables: Tables) -> None:
    columns = ("kind", "partition", "from_ms", "to_ms", "member_id", "confidence")
    assert [row[1:] for row in tables.rows("ownership", "joins and leaves", *columns) if row[0] == "owned"] == [
        (0, 3_020, 10_000, A, "inferred"),
        (0, 11_000, 200_000, A, "inferred"),
        (1, 3_020, 10_000, A, "inferred"),
        (1, 11_000, 200_000, B, "inferred"),
    ]


SCENES["uneven"] = [
    coordinator(0, "topic_created", topic="t", partition_count=6, group_id=None),
    coordinator(1, "member_joined", member_id=A, client_id="a", topics=["t"], state="Empty"),
    completed(10, 1, [], [A, B, C], owned_after=[*own(A, 0, 1, 2), *own(B, 3)]),
    coordinator(15, "topic_grown", topic="t", partition_count=7, group_id=None),
    completed(20, 2, [], [A, B], owned_after=[*own(A, 0, 1, 2, 6), *own(B, 3, 4, 5)]),
]


def test_balance(tables: Tables) -> None:
    columns = ("generation", "until_ms", "members", "partitions", "least", "most", "spread", "idle_members", "unowned")
    assert tables.rows("balance", "uneven", *columns, "most_member_id", "deviation") == [
        (1, 20, 3, 4, 0, 3, 3, 1, 2, A, pytest.approx(1.2472, abs=1e-4)),
        (2, None, 2, 7, 3, 4, 1, 0, 0, A, 0.5),
    ]


def at(partition: int, offset: int) -> dict[str, Any]:
    return {"topic": "t", "partition": partition, "offset": offset}


SCENES["commits"] = [
    coordinator(1_000, "topic_created", topic="t", partition_count=2, records_per_second=2.0, group_id=None),
    coordinator(5_000, "offsets_committed", member_id=A, generation=1, offsets=[at(0, 5), at(1, 8)]),
    coordinator(6_000, "commit_refused", member_id=A, generation=0, offsets=[at(0, 9)], error="ILLEGAL_GENERATION"),
    coordinator(7_500, "offsets_committed", member_id=A, generation=1, offsets=[at(0, 3)]),
    consumer("x", 100, "commit_succeeded", group_id="unheard", offsets=[at(0, 1)], member_id=C),
]


def test_commits_with_lag(tables: Tables) -> None:
    columns = (
        "group_id",
        "partition",
        "at_ms",
        "outcome",
        "offset",
        "previous_offset",
        "advanced",
        "end_offset",
        "lag",
    )
    assert tables.rows("commits", "commits", *columns, "since_ms", "confidence") == [
        ("g", 0, 5_000, "stored", 5, None, None, 8, 3, None, "exact"),
        ("g", 0, 6_000, "refused", 9, 5, 4, 10, 1, 1_000, "exact"),
        ("g", 0, 7_500, "stored", 3, 5, -2, 13, 10, 2_500, "exact"),
        ("g", 1, 5_000, "stored", 8, None, None, 8, 0, None, "exact"),
        ("unheard", 0, 100, "stored", 1, None, None, 0, 0, None, "inferred"),
    ]


def done(client_id: str, at_ms: int, *ranges: tuple[int, int], **fields: Any) -> dict[str, Any]:
    pieces = [{"topic": "t", "partition": 0, "start": start, "end": end} for start, end in ranges]
    return consumer(client_id, at_ms, "records_processed", ranges=pieces, **fields)


SCENES["records"] = [
    consumer("a", 0, "positions_found", offsets=[at(0, 100)], origin="earliest"),
    done("a", 10, (100, 180)),
    done("b", 30, (150, 200)),  # 150-180 again
    done("a", 40, (180, 190)),  # again, by who was slow
    done("b", 50, (230, 300)),  # 200-230 never
    consumer("b", 60, "commit_succeeded", offsets=[at(0, 320)], kind="auto"),
]


def test_records_twice_and_lost(tables: Tables) -> None:
    assert tables.rows("records", "records", "start", "end", "kind", "records", "at_ms", "client_id") == [
        (150, 180, "duplicate", 30, 30, "b"),
        (180, 190, "duplicate", 10, 40, "a"),
        (200, 230, "lost", 30, 50, "b"),
        (300, 320, "in-hand", 20, 60, "b"),
    ]
    columns = ("first_offset", "reached", "committed", "processed", "twice", "lost", "in_hand")
    assert tables.rows("progress", "records", *columns) == [(100, 300, 320, 170, 40, 30, 20)]


SCENES["client metrics"] = CLIENT_METRICS


def asked(at_ms: int, api: str, total_ms: float, parked_ms: float, error: str | None = None) -> dict[str, Any]:
    times = {"total_ms": total_ms, "parked_ms": parked_ms, "error": error}
    return coordinator(at_ms, "request", source="request-log", api=api, client_id="a", **times)


SCENES["requests"] = [
    *[asked(n, "HEARTBEAT", float(n), 0.0, "REBALANCE_IN_PROGRESS" if n > 98 else "NONE") for n in range(101)],
    asked(7, "JOIN_GROUP", 3_000.5, 3_000.0),
    asked(8, "JOIN_GROUP", 100.0, 90.0, "UNKNOWN_MEMBER_ID"),
]


def test_requests(tables: Tables) -> None:
    columns = ("api", "requests", "failed", "errors", "p50_ms", "p99_ms", "max_ms", "parked_ms", "parked_max_ms")
    near = pytest.approx
    assert tables.rows("requests", "requests", *columns) == [
        ("HEARTBEAT", 101, 2, {"REBALANCE_IN_PROGRESS": 2}, 50.0, 99.0, 100.0, 0.0, 0.0),
        ("JOIN_GROUP", 2, 1, {"UNKNOWN_MEMBER_ID": 1}, near(1550.25), near(2971.495), 3_000.5, 3_090.0, 3_000.0),
    ]


SCENES["streams"] = [
    coordinator(at_ms, "partition_elected", seq=seq) for seq, at_ms in [(1, 0), (2, 10), (4, 5), (3, 7), (7, 20)]
]


def test_streams(tables: Tables) -> None:
    expected = [("streams", "coordinator", "n1", 5, 1, 7, 2, 1, 0, 20, 1)]
    assert tables.rows("streams", "streams", *schemas.STREAMS.names) == expected


def test_tables_are_as_their_schemas_say(tables: Tables) -> None:
    names = ("rebalances", "member_sessions", "pauses", "ownership", "balance", "client_metrics", "commits", "records")
    for name in (*names, "progress"):
        assert tables.table(name).schema.equals(schemas.TABLES[name], check_metadata=True), name
