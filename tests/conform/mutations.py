"""One rule of the coordinator broken at a time, each judged by the recordings: ``python -m tests.conform.mutations``.

Prints a table with the first script that differs. It is played alone, with the broken rule and without it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from conformance.judged.__main__ import by_profile
from conformance.judged.brokers import Profile
from rejoin.conform.applicability import TRANSACTION_VERSION
from rejoin.conform.comparison.outcomes import ScriptOutcome, shown
from rejoin.conform.judged_broker import look
from rejoin.conform.judging import Judge
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.recordings.reading import PackedScript, read_set
from rejoin.coordinator.service import logs
from tests.conform import share_mutations as of_share_groups
from tests.conform import streams_mutations as of_streams_groups
from tests.conform.own_broker import own_broker
from tests.simulation import test_producers as of_producers
from tests.simulation import test_transactions as of_transactions
from tests.simulation.search import migration_mutations as of_consumers
from tests.simulation.search import mutations as of_groups

AT_ONCE: Final = 12
AT_A_TIME: Final = 36
"""Scripts that are played before those that differ are played alone."""


@dataclass(frozen=True)
class Mutation:
    """A broken rule, and the sets that play its requests."""

    apply: Callable[[pytest.MonkeyPatch], None]
    sets: tuple[str, ...]

    @property
    def words(self) -> str:
        return self.apply.__name__.replace("_", " ")


GROUPS: Final = ("groups", "offsets")
CONSUMERS: Final = ("consumer-protocol",)
TRANSACTIONS: Final = ("transactions",)
SHARE_GROUPS: Final = ("share-groups",)
STREAMS_GROUPS: Final = ("streams-groups",)
MUTATIONS: Final = (
    Mutation(of_groups.a_heartbeat_restarts_no_session, GROUPS),
    Mutation(of_groups.sessions_never_end, GROUPS),
    Mutation(of_groups.heartbeats_of_any_generation_are_fine, GROUPS),
    Mutation(of_groups.heartbeats_do_not_announce_a_rebalance, GROUPS),
    Mutation(of_groups.any_member_may_commit, GROUPS),
    Mutation(of_groups.commits_are_answered_before_they_are_stored, GROUPS),
    Mutation(of_groups.generations_do_not_count_up, GROUPS),
    Mutation(of_groups.every_member_leads, GROUPS),
    Mutation(of_groups.a_first_rebalance_does_not_wait, GROUPS),
    Mutation(of_groups.a_join_that_is_replaced_is_forgotten, GROUPS),
    Mutation(of_groups.duplicate_instances_are_not_fenced, GROUPS),
    Mutation(of_groups.members_that_leave_stay, GROUPS),
    Mutation(of_consumers.partitions_are_handed_out_that_others_hold, CONSUMERS),
    Mutation(of_consumers.revocations_are_not_waited_for, CONSUMERS),
    Mutation(of_consumers.removals_lower_the_epoch, CONSUMERS),
    Mutation(of_consumers.epochs_are_not_compared, CONSUMERS),
    Mutation(of_transactions.offsets_of_a_transaction_count_at_once, TRANSACTIONS),
    Mutation(of_transactions.the_last_stable_offset_is_the_high_watermark, TRANSACTIONS),
    Mutation(of_transactions.epochs_of_producers_are_not_compared, TRANSACTIONS),
    Mutation(of_producers.the_broker_knows_no_batch_again, TRANSACTIONS),
    Mutation(of_share_groups.locks_never_end, SHARE_GROUPS),
    Mutation(of_share_groups.delivery_counts_do_not_rise, SHARE_GROUPS),
    Mutation(of_streams_groups.tasks_are_handed_out_that_others_hold, STREAMS_GROUPS),
    Mutation(of_streams_groups.epochs_of_streams_members_are_not_compared, STREAMS_GROUPS),
)


async def found_by(mutation: Mutation, equal: dict[str, bool]) -> ScriptOutcome | None:
    """The first script that differs alone and with the broken rule only. ``equal``: scripts played without one."""
    scripts = [script for name in mutation.sets for script in read_set(name) if script.unplayable is None]
    for profile, some in by_profile(scripts):
        for begin in range(0, len(some), AT_A_TIME):
            part = [script for script in some[begin : begin + AT_A_TIME] if equal.get(script.full_name, True)]
            with pytest.MonkeyPatch.context() as patch:
                mutation.apply(patch)
                suspects = {each.full_name for each in await played(profile, part) if each.differences}
            for script in part:
                if script.full_name not in suspects:
                    continue
                if script.full_name not in equal:
                    (right,) = await played(profile, [script])
                    equal[script.full_name] = right.word == "equal"
                if not equal[script.full_name]:
                    continue
                with pytest.MonkeyPatch.context() as patch:
                    mutation.apply(patch)
                    (wrong,) = await played(profile, [script])
                if {one.kind for one in wrong.differences} - {"time"}:
                    return wrong
    return None


async def played(profile: Profile, scripts: list[PackedScript]) -> list[ScriptOutcome]:
    """The outcomes of scripts on a new broker of this process."""
    settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in profile.settings.items()}
    if TRANSACTION_VERSION in profile.features:
        settings["emulator_transaction_version"] = profile.features[TRANSACTION_VERSION]
    async with own_broker(**settings) as address:
        judge = Judge(await look(address, BrokerAccess()), at_once=AT_ONCE)
        return await judge.judge(scripts, lambda _: None)


async def rows(only: str) -> None:
    """Judge the coordinator with each broken rule, and print the table's rows."""
    equal: dict[str, bool] = {}
    for mutation in MUTATIONS:
        if only in mutation.words:
            print(f"| {mutation.words} | {' | '.join(_cells(await found_by(mutation, equal)))} |", flush=True)


def _cells(found: ScriptOutcome | None) -> tuple[str, str]:
    if found is None:
        return "not found", ""
    one = found.differences[0]
    what = f"{one.api} {one.path or 'answer'}: {shown(one.kafka, 40)}, here {shown(one.other, 40)}"
    return f"`{found.full_name}`", what.replace("|", "\\|")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Judge the coordinator with one broken rule at a time.")
    parser.add_argument("--only", default="", help="only rules whose names contain this")
    logs.configure("critical")
    print("| broken rule | a script that differs | Kafka, and here |\n|---|---|---|", flush=True)
    asyncio.run(rows(parser.parse_args().only))


if __name__ == "__main__":
    main()
