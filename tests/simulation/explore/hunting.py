"""Broken rules and the world that finds each, with its depth: the table of ``make explore-mutations``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.liveness import NO_WAY
from rejoin.simulation.explore.world import WORLDS, read_world
from rejoin.simulation.search.search import play_checked
from tests.simulation.explore.broken.shares import OF_SHARES
from tests.simulation.explore.broken.streams import OF_STREAMS
from tests.simulation.explore.broken.topics import FIRST as FIRST_OF_TOPICS
from tests.simulation.explore.broken.topics import OF_TOPICS
from tests.simulation.explore.broken.topics import WORLDS as WORLDS_OF_TOPICS
from tests.simulation.explore.mutations import MORE
from tests.simulation.search import migration_mutations, mutations, transaction_mutations
from tests.simulation.search.mutations import SEARCHED, Mutation

STATES: Final = 1_500
"""A world that has met so many states gives way to the next one."""
SEEDS: Final = 60
"""Seeds of ``search`` that a broken rule is looked for with, counted from 0."""

JOIN, CRASH = "two_members_join", "two_members_and_a_crash"
LOST, STATIC, FAILOVER = "two_members_and_a_lost_message", "static_member_comes_back", "failover_in_any_moment"
STABLE, THIRD, PAUSED = "stable_group_and_a_crash", "third_member_joins", "paused_member_comes_back"
COMMITS, TWICE, ASSIGNORS = "commits_and_a_failover", "instance_that_runs_twice", "two_assignors"
TAKES_IN, SILENCE = "consumer_group_takes_in_a_member", "consumer_group_and_a_silence"
LOADED, MIGRATES, WITHOUT = "consumer_group_and_a_failover", "group_that_migrates", "rebalance_without_a_member"

CLASSIC: Final = (JOIN, STABLE, WITHOUT, THIRD, CRASH, FAILOVER, STATIC, COMMITS, PAUSED, TWICE, LOST, ASSIGNORS)
CONSUMER: Final = (TAKES_IN, SILENCE, LOADED, MIGRATES)

REQUESTS: Final = {"consumer": "requests_to_a_consumer_group", "faults": "requests_to_a_classic_group"}
BY_REQUESTS: Final = (
    "heartbeats_of_any_generation_are_fine",
    "any_member_may_commit",
    "generations_do_not_count_up",
    "epochs_are_not_compared",
    "replies_do_not_wait_for_the_log",
)
"""Broken rules that clients show which send what they like, and by schedule the worlds of such clients."""
SHARE_CRASH, SHARE_HANGS = "share_group_and_a_crash", "share_handlers_that_hang"
SHARE_LOADED, SHARE_LOST = "share_state_and_a_failover", "share_group_and_a_lost_message"
STREAMS_TAKES_IN, STREAMS_CRASH = "streams_group_takes_in_an_instance", "streams_group_and_a_crash"
STREAMS_LOADED, STREAMS_STATIC = "streams_group_and_a_failover", "static_streams_instance_comes_back"

WORLDS_OF: Final = {
    "consumer": CONSUMER,
    "share": (SHARE_CRASH, SHARE_HANGS, SHARE_LOADED, SHARE_LOST),
    "streams": (STREAMS_TAKES_IN, STREAMS_CRASH, STREAMS_LOADED, STREAMS_STATIC),
    **transaction_mutations.WORLDS,
    **WORLDS_OF_TOPICS,
}
"""By schedule of ``search``: the worlds of its groups. Others are of classic groups."""

FIRST: Final = {
    "commits_are_answered_before_they_are_stored": COMMITS,
    "an_assignment_is_handed_out_before_it_is_stored": FAILOVER,
    "sessions_never_end": STABLE,
    "the_join_phase_has_no_timeout": WITHOUT,
    "the_join_phase_does_not_wait": THIRD,
    "members_need_not_sync": WITHOUT,
    "no_leader_is_elected_when_the_leader_stays_away": STATIC,
    "parked_requests_are_forgotten_when_a_node_resigns": FAILOVER,
    "a_join_that_is_replaced_is_forgotten": THIRD,
    "a_parked_sync_of_a_removed_member_is_forgotten": CRASH,
    "offsets_are_not_loaded": COMMITS,
    "a_group_is_loaded_as_it_was_first": COMMITS,
    "loaded_members_have_no_sessions": COMMITS,
    "the_first_name_is_chosen": ASSIGNORS,
    "duplicate_instances_are_not_fenced": TWICE,
    "the_old_process_of_an_instance_is_not_fenced": TWICE,
    "members_that_leave_stay": STABLE,
    "the_last_to_leave_brings_no_rebalance": STABLE,
    "a_failed_append_counts_as_stored": COMMITS,
    "a_new_leader_of_the_log_serves_before_it_has_read": COMMITS,
    "sessions_end_a_moment_early": STABLE,
    "sessions_end_a_second_late": STABLE,
    "a_heartbeat_restarts_no_session": STABLE,
    "heartbeats_do_not_announce_a_rebalance": STABLE,
    "a_first_rebalance_does_not_wait": JOIN,
    "an_answered_sync_restarts_no_session": JOIN,
    "the_sync_timer_of_the_last_attempt_goes_on": CRASH,
    "an_id_that_expires_leaves_the_join_phase_waiting": CRASH,
    "a_repeated_join_is_answered_without_members": LOST,
    "a_static_member_that_comes_back_is_not_written": STATIC,
    "an_assignment_of_an_older_generation_counts": FAILOVER,
    "an_assignment_that_was_not_stored_counts": COMMITS,
    "an_empty_group_is_loaded_with_its_last_members": COMMITS,
    "a_loaded_group_has_lost_its_leader": FAILOVER,
    "a_group_that_resigns_leaves_its_syncs_parked": FAILOVER,
    "a_consumer_does_not_join_again_when_it_is_unknown": PAUSED,
    "a_consumer_does_not_join_again_after_an_illegal_generation": PAUSED,
    "a_consumer_does_not_hear_of_a_rebalance": WITHOUT,
    "a_consumer_keeps_its_partitions_while_it_joins": THIRD,
    "a_consumer_keeps_an_id_that_is_unknown": PAUSED,
    "a_consumer_takes_an_assignment_of_a_membership_that_is_over": FAILOVER,
    "heartbeats_restart_no_session": SILENCE,
    "a_fenced_consumer_keeps_its_partitions": SILENCE,
    "a_fenced_consumer_goes_on": SILENCE,
    "removals_lower_the_epoch": SILENCE,
    "changes_that_fail_stay": LOADED,
    "what_members_have_is_not_loaded": LOADED,
    "a_downgrade_drops_offsets": MIGRATES,
    "an_upgrade_forgets_who_has_what": MIGRATES,
}
"""The world that is tried first."""


FIRST_OF: Final = {
    **FIRST_OF_TOPICS,
    **{
        ("share", name): SHARE_CRASH
        for name in (
            "locks_end_too_soon",
            "a_session_that_ends_releases_what_others_hold",
            "an_accepted_record_is_delivered_again",
            "share_heartbeats_restart_no_session",
            "share_sessions_never_end",
            "a_share_removal_lowers_the_epoch",
            "verdicts_are_not_stored",
            "verdicts_are_answered_before_they_are_stored",
        )
    },
    **{
        ("share", name): SHARE_HANGS
        for name in (
            "locks_never_end",
            "deliveries_are_not_counted",
            "a_record_is_delivered_once_more_than_its_limit",
            "a_record_is_given_up_before_its_limit",
            "a_record_that_is_given_back_is_done_with",
            "locks_that_end_are_not_stored_as_deliveries",
        )
    },
    **{
        ("share", name): SHARE_LOADED
        for name in (
            "a_leader_loads_without_delivery_counts",
            "replay_forgets_a_batch",
            "a_coordinator_loads_all_but_the_last_batch",
            "snapshots_lack_the_first_batch",
        )
    },
    **{
        ("streams", name): STREAMS_LOADED
        for name in (
            "epochs_are_answered_before_they_are_stored",
            "streams_changes_that_fail_stay",
            "threads_are_loaded_without_their_tasks",
            "threads_are_loaded_with_the_epoch_before",
        )
    },
    **{
        ("streams", name): STREAMS_CRASH
        for name in (
            "sessions_are_not_restarted",
            "sessions_never_end",
            "standbys_stay_where_they_are",
            "a_streams_removal_lowers_the_epoch",
            "a_removed_thread_leaves_its_record",
        )
    },
    **{
        ("streams", name): STREAMS_STATIC
        for name in (
            "a_static_thread_comes_back_beside_itself",
            "a_static_thread_comes_back_without_a_target",
            "a_static_thread_comes_back_without_its_tasks",
        )
    },
}
"""As FIRST, of share and streams groups: by schedule and name."""


@dataclass(frozen=True)
class Hunted:
    """A broken rule that a world has found."""

    mutation: str
    world: str
    check: str
    depth: int
    states: int
    seconds: float


def worlds_for(mutation: Mutation) -> tuple[str, ...]:
    """The worlds that a broken rule is looked for in, in order."""
    others = WORLDS_OF.get(mutation.schedule, CLASSIC)
    name = mutation.name
    if name in BY_REQUESTS and mutation.schedule in REQUESTS:
        return (REQUESTS[mutation.schedule], *others)
    first = FIRST_OF.get((mutation.schedule, name))
    if mutation.schedule not in ("share", "streams"):  # they have broken rules of the same names
        first = first or {**FIRST, **transaction_mutations.FIRST}.get(name)
    return others if first is None else (first, *(each for each in others if each != first))


def hunt(mutation: Mutation, among: tuple[str, ...], states: int = STATES) -> Hunted | None:
    """Explore one world after the other until one finds the broken rule."""
    for name in among:
        began = time.process_time()
        world = read_world(WORLDS / f"{name}.yaml")
        with pytest.MonkeyPatch.context() as patch:
            mutation.apply(patch)
            found = explore(world, most_states=states)
        broken = found.counterexample
        if broken is not None and "TypeError" not in broken.text and "AttributeError" not in broken.text:
            seconds = time.process_time() - began
            return Hunted(mutation.name, name, broken.check, len(broken.path), found.states, seconds)
    return None


def all_mutations() -> Iterator[Mutation]:
    """The broken rules of ``search``, and those that only an exploration looks for."""
    yield from mutations.MUTATIONS
    for apply, check, first in migration_mutations.MUTATIONS:
        yield Mutation(apply, check, "consumer", first)
    yield from MORE
    yield from transaction_mutations.TRANSACTIONAL
    yield from OF_SHARES
    yield from OF_STREAMS
    yield from OF_TOPICS


def seeds_of(mutation: Mutation) -> str:
    """Count the seeds that ``search`` plays until it finds a broken rule, with whatever check."""
    if mutation.schedule not in SEARCHED:
        return "not counted"
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch)
        for seed in range(SEEDS):
            if play_checked(SEARCHED[mutation.schedule](seed)).violation is not None:
                return str(seed + 1)
    return f"not in {SEEDS}"


def shown(mutation: Mutation) -> str:
    """The name of a broken rule in words, with the kind of group where several kinds have one of that name."""
    is_shared = len({each.schedule for each in all_mutations() if each.name == mutation.name}) > 1
    kind = mutation.schedule if mutation.schedule in ("consumer", "share", "streams") else "classic"
    return mutation.name.replace("_", " ") + (f" ({kind})" if is_shared else "")


def row_of(mutation: Mutation) -> str:
    """A row of the table."""
    name, found = shown(mutation), hunt(mutation, worlds_for(mutation))
    if found is None:
        return f"| {name} | none | | | | | {seeds_of(mutation)} |"
    check = "no way to settle" if found.check == NO_WAY else found.check.replace("_", " ")
    world = found.world.replace("_", " ")
    return (
        f"| {name} | {world} | {check} | {found.depth} | {found.states:,} | {found.seconds:.1f} "
        f"| {seeds_of(mutation)} |"
    )


def main(names: list[str]) -> None:
    """Print the table, of all broken rules or of these."""
    print("| broken rule | world | found by | steps | states | s | seeds |")
    print("|---|---|---|---|---|---|---|")
    for mutation in all_mutations():
        if not names or mutation.name in names:
            print(row_of(mutation), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
