"""Invariants of every run, one function each, named for the violation.

A check of a step is given the step and what was observed before, and yields what is wrong. A check of the whole run
looks at every node and consumer, now and then and at the end. The checks say again, in other words, what the
specification says; they do not ask the code that they check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from rejoin.journal.events.client import PartitionsAssigned
from rejoin.simulation.search.checks import (
    assignments,
    consumer_groups,
    convergence,
    generations,
    logs,
    members,
    offsets,
    producers,
    rebalances,
    requests,
    shares,
    streams,
    transactions,
)
from rejoin.simulation.search.observations import Observations, ObservedStep

StepCheck: TypeAlias = Callable[[Observations, ObservedStep], Iterator[str]]
AssignmentCheck: TypeAlias = Callable[[Observations, PartitionsAssigned], Iterator[str]]
WholeCheck: TypeAlias = Callable[[Observations], Iterator[str]]

EACH_STEP: Final[tuple[StepCheck, ...]] = (
    requests.the_core_fails,
    requests.a_request_is_answered_twice,
    generations.a_generation_goes_back,
    generations.a_completed_generation_is_forgotten,
    generations.a_generation_has_two_leaders,
    generations.a_generation_has_no_leader,
    assignments.a_partition_has_two_owners_in_a_generation,
    assignments.a_member_gets_what_the_leader_did_not_give,
    assignments.a_non_member_gets_an_assignment,
    generations.a_generation_is_handed_out_before_it_is_stored,
    offsets.a_commit_is_acknowledged_before_it_is_stored,
    offsets.a_non_member_commits,
    members.a_heartbeat_is_answered_wrongly,
    members.a_member_is_removed_that_beat_in_time,
    rebalances.a_member_is_given_no_time_to_rejoin,
    rebalances.a_first_rebalance_does_not_wait_for_more_members,
    rebalances.a_protocol_is_chosen_that_is_not_the_majoritys,
    members.a_member_is_added_under_no_id,
    members.a_member_that_left_is_still_a_member,
    members.an_instance_id_has_two_members,
    transactions.a_last_stable_offset_passes_an_open_transaction,
    transactions.a_listed_end_passes_an_open_transaction,
    transactions.a_successor_gets_an_epoch_that_was_given_before,
    transactions.a_fenced_producer_ends_a_transaction,
    transactions.an_end_is_answered_before_it_is_stored,
)
"""After every step of a node."""

ON_ASSIGNMENT: Final[tuple[AssignmentCheck, ...]] = (assignments.a_partition_is_assigned_that_was_not_given_up,)
"""After a consumer got partitions."""

NOW_AND_THEN: Final[tuple[WholeCheck, ...]] = (
    requests.a_request_is_never_answered,
    members.a_silent_member_stays,
    rebalances.a_join_phase_does_not_end,
    rebalances.a_member_need_not_sync,
    logs.the_log_differs_from_memory,
    offsets.offsets_of_a_topic_that_is_gone_stay,
    logs.an_offsets_partition_has_two_leaders,
    transactions.a_transaction_is_read_before_it_is_whole,
    transactions.a_fenced_producer_writes,
    transactions.a_marker_was_never_decided,
    transactions.a_complete_transaction_is_open_in_a_log,
)
"""Every second of virtual time."""

OF_ALL_LOGS: Final[tuple[WholeCheck, ...]] = (
    producers.a_record_is_stored_twice,
    producers.a_record_overtakes_another,
    producers.an_acknowledged_record_is_lost,
    transactions.a_record_of_an_aborted_transaction_is_read,
    transactions.a_fenced_producers_record_is_visible,
    transactions.a_transformed_record_overtakes_another,
)
"""They hold at any time, and read every record that was written: after each step of a small world, or at the end."""

AT_THE_END: Final[tuple[WholeCheck, ...]] = (
    convergence.a_group_does_not_settle,
    assignments.a_partition_is_left_without_an_owner,
    convergence.memory_grows,
    producers.a_record_never_ends,
    transactions.a_transaction_never_ends,
    transactions.a_transaction_is_visible_in_part,
)
"""When the faults have been over for long enough."""


class CheckSet(NamedTuple):
    """The checks of one kind of runs, by when they look."""

    each_step: tuple[StepCheck, ...]
    on_assignment: tuple[AssignmentCheck, ...]
    now_and_then: tuple[WholeCheck, ...]
    at_the_end: tuple[WholeCheck, ...]
    of_all_logs: tuple[WholeCheck, ...] = ()


CLASSIC: Final = CheckSet(EACH_STEP, ON_ASSIGNMENT, NOW_AND_THEN, AT_THE_END, OF_ALL_LOGS)
"""For runs in which all groups are classic ones."""

MIGRATING: Final = CheckSet(
    (
        requests.the_core_fails,
        requests.a_request_is_answered_twice,
        offsets.a_commit_is_acknowledged_before_it_is_stored,
        consumer_groups.a_partition_has_two_holders,
        consumer_groups.a_reconciled_member_has_more_than_its_target,
        consumer_groups.an_epoch_goes_back,
        consumer_groups.an_epoch_is_answered_before_it_is_stored,
        consumer_groups.a_member_with_another_epoch_is_accepted,
        consumer_groups.a_member_commits_with_another_epoch,
        consumer_groups.a_member_says_that_it_gave_up_what_it_has,
        consumer_groups.a_consumer_group_member_is_removed_that_beat_in_time,
        consumer_groups.a_migration_loses_a_commit,
        consumer_groups.a_group_moves_against_its_policy,
    ),
    (consumer_groups.a_partition_has_two_owners,),
    (
        requests.a_request_is_never_answered,
        consumer_groups.a_silent_consumer_group_member_stays,
        consumer_groups.a_member_never_gives_up_its_partitions,
        consumer_groups.a_group_differs_from_its_log,
        offsets.offsets_of_a_topic_that_is_gone_stay,
        logs.an_offsets_partition_has_two_leaders,
    ),
    (
        consumer_groups.a_member_does_not_reach_its_target,
        consumer_groups.a_commit_is_gone,
        consumer_groups.a_partition_of_a_consumer_group_is_left_without_an_owner,
        convergence.memory_grows,
    ),
)
"""For runs with consumer groups, and with groups that move from one protocol to the other."""

SHARED: Final = CheckSet(
    (
        requests.the_core_fails,
        requests.a_request_is_answered_twice,
        shares.a_loaded_window_differs_from_the_log,
        shares.a_finished_record_is_delivered,
        shares.a_record_has_two_holders,
        shares.a_delivery_is_not_counted,
        shares.a_record_is_delivered_beyond_its_limit,
        shares.a_share_epoch_falls,
        shares.a_share_member_is_removed_that_beat_in_time,
        shares.a_response_has_what_its_member_was_not_given,
        shares.a_verdict_is_answered_before_it_is_stored,
        shares.a_member_decides_about_a_record_of_another,
        shares.a_request_with_another_session_epoch_is_accepted,
    ),
    (),
    (
        shares.a_lock_never_ends,
        shares.a_silent_share_member_stays,
        shares.a_snapshot_differs_from_the_log,
        logs.an_offsets_partition_has_two_leaders,
    ),
    (
        shares.a_shared_record_is_lost,
        shares.a_shared_record_is_left,
        shares.a_share_group_does_not_settle,
    ),
)
"""For runs with share groups."""

STREAMED: Final = CheckSet(
    (
        requests.the_core_fails,
        requests.a_request_is_answered_twice,
        streams.an_active_task_has_two_owners,
        streams.a_process_has_a_task_twice,
        streams.a_reconciled_thread_differs_from_its_target,
        streams.a_streams_epoch_falls,
        streams.a_streams_epoch_is_answered_before_it_is_stored,
        streams.a_thread_with_another_epoch_is_accepted,
        streams.a_thread_is_removed_that_beat_in_time,
    ),
    (),
    (
        requests.a_request_is_never_answered,
        streams.an_active_task_runs_twice,
        streams.an_honest_thread_is_refused,
        streams.a_silent_thread_stays,
        streams.a_thread_never_gives_up_its_tasks,
        streams.a_streams_group_differs_from_its_log,
        logs.an_offsets_partition_has_two_leaders,
    ),
    (
        streams.a_streams_group_does_not_settle,
        streams.a_task_is_lost,
        streams.a_thread_runs_other_tasks_than_it_has,
    ),
)
"""For runs with the threads of an application of Kafka Streams."""
