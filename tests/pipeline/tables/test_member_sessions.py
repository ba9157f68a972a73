"""What a session of a member is, without a JVM."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rejoin.pipeline.schemas import EVENTS, MEMBER_SESSIONS, REBALANCES
from rejoin.pipeline.tables.group_tables import member_sessions
from rejoin.pipeline.tables.groups.member_sessions import sessions_of_group
from rejoin.pipeline.tables.groups.rows import EventOfGroup, GroupRows, RebalanceOfGroup, RunSummary

ENDS_AT = 1_000


def event(name: str, at_ms: int, member_id: str, **fields: Any) -> EventOfGroup:
    known = {"confidence": "exact", "member_id": member_id, **fields}
    return EventOfGroup("run", "g", "coordinator", "1", at_ms, at_ms, name, **known)


def rebalance(
    began_ms: int, ended_ms: int | None, generation: int | None, members: list[str], cause: str
) -> RebalanceOfGroup:
    known = {"ended_at_ms": ended_ms, "generation_to": generation, "members_after": members, "cause_member_id": cause}
    return RebalanceOfGroup("run", "g", began_ms, **known)  # type: ignore[arg-type]


def sessions(*events: EventOfGroup, rebalances: tuple[RebalanceOfGroup, ...] = ()) -> list[dict[str, Any]]:
    return sessions_of_group(GroupRows(events[::-1], rebalances, RunSummary(ENDS_AT)))


def test_a_member_that_was_removed_and_joins_with_its_id_has_another_session() -> None:
    first, second = sessions(
        event("member_joined", 100, "m", client_id="c", client_host="/h"),
        event("member_removed", 300, "m", cause="session-expiry"),
        event("member_joined", 350, "m", client_id="c", client_host="/h", member_type="consumer"),
        event("member_rejoined", 400, "m"),
    )
    assert (first["end"], first["ended_at_ms"], first["session_ms"], first["away_ms"]) == (
        "session-expiry",
        300,
        200,
        None,
    )
    assert (second["end"], second["session_ms"], second["rejoins"]) == ("open", ENDS_AT - 350, 1)
    assert (second["previous_end"], second["away_ms"], second["group_protocol"]) == ("session-expiry", 50, "consumer")


def test_a_static_member_that_restarts_has_the_settings_of_the_one_that_it_replaces() -> None:
    old, new = sessions(
        event("member_joined", 10, "s-1", group_instance_id="s", client_id="c", session_timeout_ms=9_000, topics=["t"]),
        event("static_member_replaced", 50, "s-2", other_member_id="s-1", group_instance_id="s", client_id="d"),
    )
    assert (old["end"], old["ended_at_ms"], old["replaced_by"], old["client_id"]) == ("replaced", 50, "s-2", "c")
    assert (new["replaces"], new["session_timeout_ms"], new["topics"], new["client_id"]) == ("s-1", 9_000, ["t"], "d")
    assert (new["previous_end"], new["away_ms"]) == ("replaced", 0)


def test_a_replacement_that_could_not_be_stored_ends_nothing() -> None:
    old, _ = sessions(
        event("member_joined", 10, "s-1", group_instance_id="s"),
        event("static_member_replaced", 50, "s-2", other_member_id="s-1", group_instance_id="s"),
        event("static_member_restored", 60, "s-1", group_instance_id="s"),
    )
    assert (old["end"], old["ended_at_ms"], old["replaced_by"]) == ("open", None, None)


def test_a_session_knows_its_generations_and_the_rebalances_that_began_through_it() -> None:
    [row] = sessions(
        event("member_joined", 10, "m", confidence="inferred"),
        rebalances=(
            rebalance(10, 20, 1, ["m"], "m"),
            rebalance(30, 40, 2, ["m", "n"], "n"),
            rebalance(50, None, None, ["m"], "m"),
        ),
    )
    assert (row["first_generation"], row["last_generation"], row["generations"], row["caused"]) == (1, 2, 2, 2)
    assert row["confidence"] == "inferred"


def test_a_member_that_joins_again_under_its_id_begins_to_count_anew() -> None:
    first, second = sessions(
        event("member_joined", 10, "m"),
        event("member_removed", 50, "m", cause="left"),
        event("member_joined", 70, "m"),
        rebalances=(rebalance(10, 20, 1, ["m"], "m"), rebalance(70, 80, 3, ["m"], "m")),
    )
    assert (first["first_generation"], first["last_generation"], first["generations"], first["caused"]) == (1, 1, 1, 1)
    assert (second["first_generation"], second["generations"], second["caused"]) == (3, 1, 1)


def test_without_events_there_are_no_sessions() -> None:
    none = member_sessions(EVENTS.empty_table(), REBALANCES.empty_table())
    assert none.schema.names == MEMBER_SESSIONS.names
    assert isinstance(none, pa.Table)
    assert none.num_rows == 0
