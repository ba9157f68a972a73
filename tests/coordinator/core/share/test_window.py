"""Single rules of the window, each with the smallest window that shows it."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.share.window.acknowledging import acknowledgement_error
from rejoin.coordinator.core.share.window.effects import DeadLetterCause
from rejoin.coordinator.core.share.window.share_partition import SharePartition
from rejoin.coordinator.core.share.window.values import ReadRange, SharePartitionState
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch, PersistedState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch
from tests.coordinator.core.share.one_partition import LOCK_MS, OnePartition, Settings

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LOG = ((0, 3), (4, 7), (8, 11))


@pytest.fixture
def one() -> OnePartition:
    return OnePartition()


def test_a_window_from_fetch_to_redelivery(one: OnePartition) -> None:
    """Batches stay whole though five records were asked for; what is released comes again, with its count."""
    assert one.fetch("A", *LOG, most=5) == [(0, 7, 1)]
    assert one.fetch("B", *LOG, most=2, by_record=True) == [(8, 9, 1)]
    assert one.states() == "0-7 ACQUIRED 1 A, 8-9 ACQUIRED 1 B, 10-11 AVAILABLE 0"
    assert one.acknowledge("A", (0, 3, (ACCEPT,))) is ErrorCode.NONE
    assert list(one.writes[-1].batches()) == [PersistedBatch(offset, offset, 2, 1) for offset in range(4)]
    assert (one.writes[-1].start_offset, one.writes[-1].delivery_complete_count) == (0, 4)
    assert one.partition.start_offset == 4
    assert one.acknowledge("A", (4, 7, (RELEASE, ACCEPT, REJECT, GAP))) is ErrorCode.NONE
    assert one.partition.delivery_complete_count == 3
    assert one.partition.next_fetch_offset() == 4
    assert one.fetch("B", *LOG) == [(4, 4, 2), (10, 11, 1)]
    assert one.release("B") is ErrorCode.NONE
    assert one.states().startswith("4-4 AVAILABLE 2, 5-5 ACKNOWLEDGED 1, 6-7 ARCHIVED 1, 8-11 AVAILABLE 1")


def test_the_last_acknowledgement_empties_the_window_and_is_persisted_with_the_old_start(one: OnePartition) -> None:
    one.fetch("A", *LOG)
    one.acknowledge("A", (0, 11, (ACCEPT,)))
    assert (one.writes[-1].start_offset, one.writes[-1].delivery_complete_count) == (0, 12)
    assert (one.partition.start_offset, one.partition.end_offset, one.states()) == (12, 12, "")
    assert one.woken == 1


def test_a_lock_that_runs_out_gives_the_records_to_others(one: OnePartition) -> None:
    one.fetch("A", (0, 3))
    assert one.partition.next_deadline() == LOCK_MS
    assert one.wait(LOCK_MS - 1) == []
    assert one.acknowledge("A", (1, 1, (RENEW,))) is ErrorCode.NONE
    assert one.wait(1) == [(0, 0), (2, 2), (3, 3)]
    assert one.states() == "0-0 AVAILABLE 1, 1-1 ACQUIRED 1 A, 2-3 AVAILABLE 1"
    assert one.acknowledge("A", (0, 3, (ACCEPT,))) is ErrorCode.INVALID_RECORD_STATE
    assert one.fetch("B", (0, 3)) == [(0, 0, 2), (2, 3, 2)]


def test_a_lock_can_be_ended_before_its_time(one: OnePartition) -> None:
    one.fetch("A", *LOG, size=4)
    one.acknowledge("A", (4, 4, (ACCEPT,)))
    assert one.partition.expire_lock(1) == (0, 3)
    assert one.partition.expire_lock(5) == (5, 5)
    one.settle()
    assert one.states().startswith("0-3 AVAILABLE 1, 4-4 ACKNOWLEDGED 1, 5-5 AVAILABLE 1, 6-7 ACQUIRED 1 A")
    assert [one.partition.expire_lock(offset) for offset in (1, 4, 5, 99)] == [None] * 4
    assert one.wait(LOCK_MS) == [(8, 11), (6, 6), (7, 7)]


def test_a_clock_that_steps_takes_nothing_off_a_lock(one: OnePartition) -> None:
    one.fetch("A", *LOG, size=4)
    one.acknowledge("A", (4, 4, (ACCEPT,)))
    one.partition.postpone_locks(3_600_000)
    one.now = 3_600_000
    assert one.wait(LOCK_MS - 1) == []
    assert one.partition.view(one.now).batches[0].runs[0].lock_ms == 1
    assert len(one.wait(1)) == 5


def test_a_record_at_its_delivery_limit_is_archived() -> None:
    one = OnePartition()
    one.settings.delivery_count_limit = 2
    for _ in range(2):
        one.fetch("A", (0, 0))
        one.wait(LOCK_MS)
    assert (one.partition.start_offset, one.letters) == (1, [])


def test_doubtful_records_come_in_smaller_and_smaller_parts(one: OnePartition) -> None:
    """Limit 5, eight records, released when all are held: whole three times, then by four, then one by one."""
    rounds: list[list[int]] = []
    while one.partition.start_offset == 0:
        rounds.append([])
        while rows := one.fetch("A", (0, 7)):
            rounds[-1].append(rows[-1][1] - rows[0][0] + 1)
        one.release("A")
    assert rounds == [[8], [8], [8], [4, 4], [1] * 8]
    assert one.partition.start_offset == 8


def test_rejected_records_go_to_the_dead_letter_queue_and_are_archived_after_it(one: OnePartition) -> None:
    one.settings.has_dead_letters = True
    one.fetch("A", (0, 3))
    assert one.acknowledge("A", (0, 3, (REJECT,))) is ErrorCode.NONE
    assert one.states() == "0-3 ARCHIVING 1"
    (letter,) = one.letters
    assert (letter.first_offset, letter.last_offset, letter.cause) == (0, 3, DeadLetterCause.REJECTED)
    one.partition.dead_letter_ended(letter.letter_id)
    one.settle()
    assert [next(write.batches()).delivery_state for write in one.writes] == [3, 4]
    assert one.partition.start_offset == 4
    one.partition.dead_letter_ended(letter.letter_id)
    assert one.partition.take_effects() == []


def test_a_failed_write_is_rolled_back_and_the_lock_goes_on(one: OnePartition) -> None:
    one.fetch("A", (0, 3))
    one.holds_back = True
    assert one.acknowledge("A", (0, 3, (ACCEPT,))) is None
    assert one.acknowledge("A", (0, 3, (ACCEPT,))) is ErrorCode.INVALID_RECORD_STATE
    one.answer(one.writes[0], ErrorCode.FENCED_STATE_EPOCH)
    assert one.errors[-1] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (one.states(), one.partition.delivery_complete_count) == ("0-3 ACQUIRED 1 A", 0)
    assert one.partition.next_deadline() == LOCK_MS


def test_a_lock_that_ran_out_before_a_failed_write_is_not_given_back(one: OnePartition) -> None:
    one.fetch("A", (0, 3))
    one.holds_back = True
    one.acknowledge("A", (0, 3, (ACCEPT,)))
    assert one.wait(LOCK_MS) == [(0, 3)]
    assert one.states() == "0-3 ACKNOWLEDGED 1"
    one.answer(one.writes[0], ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert one.states() == "0-3 AVAILABLE 1"


def test_one_wrong_range_undoes_the_others_but_no_renewal(one: OnePartition) -> None:
    one.fetch("A", (0, 3))
    one.now = 1_000
    error = one.acknowledge("A", (0, 0, (RENEW,)), (1, 1, (ACCEPT,)), (2, 9, (ACCEPT,)))
    assert error is ErrorCode.INVALID_REQUEST
    assert one.states() == "0-0 ACQUIRED 1 A, 1-3 ACQUIRED 1 A"
    assert one.wait(LOCK_MS - 1_000) == [(1, 1), (2, 2), (3, 3)]


def test_a_range_across_the_start_breaks_the_request_while_nothing_is_in_flight() -> None:
    one = OnePartition(start=5)
    one.partition.acknowledge(
        "call", "A", [AcknowledgementBatch(first_offset=3, last_offset=7, acknowledge_types=(1,))], 0
    )
    (ended,) = one.partition.take_effects()
    assert (ended.error, ended.breaks_request) == (ErrorCode.UNKNOWN_SERVER_ERROR, True)  # type: ignore[union-attr]


@pytest.mark.parametrize("last", [2**31, 2**63 - 1])
def test_absurd_ranges_are_refused_at_once(one: OnePartition, last: int) -> None:
    one.fetch("A", *LOG)
    assert one.acknowledge("A", (0, last, (ACCEPT,))) is ErrorCode.INVALID_REQUEST
    assert one.acknowledge("A", (last - 1, last, (ACCEPT,))) is ErrorCode.INVALID_REQUEST
    assert one.states() == "0-11 ACQUIRED 1 A"


@pytest.mark.parametrize(
    ("batches", "is_right"),
    [
        ([(0, 3, (ACCEPT,)), (3, 5, (ACCEPT,))], True),
        ([(0, 3, (ACCEPT,)), (2, 5, (ACCEPT,))], False),
        ([(4, 3, (ACCEPT,))], False),
        ([(0, 3, ())], False),
        ([(0, 3, (ACCEPT, ACCEPT))], False),
        ([(0, 0, (5,))], False),
        ([(0, 0, (-1,))], False),
        ([(0, 0, (RENEW,))], False),
    ],
)
def test_acknowledgements_are_checked_by_their_form(
    batches: list[tuple[int, int, tuple[int, ...]]], is_right: bool
) -> None:
    asked = [AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types) for a, b, types in batches]
    expected = ErrorCode.NONE if is_right else ErrorCode.INVALID_REQUEST
    assert acknowledgement_error(asked, knows_renewal=True, is_renewal=False) is expected


def test_renewal_needs_version_and_flag() -> None:
    asked = [AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(RENEW,))]
    assert acknowledgement_error(asked, knows_renewal=True, is_renewal=True) is ErrorCode.NONE
    assert acknowledgement_error(asked, knows_renewal=False, is_renewal=True) is ErrorCode.INVALID_REQUEST


def test_a_window_that_is_full_gives_only_what_is_inside(one: OnePartition) -> None:
    one.settings.max_record_locks = 8
    one.fetch("A", *LOG[:2])
    assert not one.partition.may_acquire()
    one.acknowledge("A", (2, 3, (RELEASE,)))
    assert one.partition.may_acquire()
    assert one.fetch("B", *LOG) == [(2, 3, 2)]
    assert not one.partition.may_acquire()


def test_a_full_window_whose_rest_is_gone_from_the_log_breaks_one_fetch(one: OnePartition) -> None:
    one.settings.max_record_locks = 8
    one.fetch("A", *LOG[:2])
    one.acknowledge("A", (6, 7, (RELEASE,)))
    assert one.acquire("B", LOG[2]).broken
    one.acknowledge("A", (0, 5, (ACCEPT,)))
    assert one.fetch("B", LOG[2]) == [(8, 11, 1)]


def test_records_below_the_logs_start_are_lost_but_for_those_that_are_held(one: OnePartition) -> None:
    one.fetch("A", *LOG[:1])
    one.fetch("B", *LOG[1:2])
    one.release("A")
    one.partition.log_start_moved(6)
    assert (one.partition.start_offset, one.states()) == (6, "6-7 ACQUIRED 1 B")
    assert one.acknowledge("B", (4, 7, (RELEASE,))) is ErrorCode.NONE
    assert one.states() == "6-7 AVAILABLE 1"


def test_holes_of_a_loaded_window_are_acquired_as_new() -> None:
    one = OnePartition(PersistedBatch(2, 3, 0, 3), PersistedBatch(6, 7, 2, 1))
    assert one.partition.view(0).gap_window == (0, 7)
    assert one.partition.next_fetch_offset() == 0
    assert one.fetch("A", (0, 7), (8, 9), most=3) == [(0, 1, 1)]
    one.settings.delivery_count_limit = 9
    assert one.fetch("A", (0, 7), (8, 9)) == [(2, 3, 4), (4, 5, 1), (8, 9, 1)]


def test_records_that_waited_for_the_dead_letter_queue_go_there_again() -> None:
    one = OnePartition(PersistedBatch(0, 3, 3, 5), PersistedBatch(4, 5, 3, 1))
    assert [(each.first_offset, each.cause.value) for each in one.letters] == [(0, "delivery count"), (4, "rejected")]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
        (PersistedState(0, -1, ()), ErrorCode.OFFSET_NOT_AVAILABLE),
        (PersistedState(0, 5, (PersistedBatch(3, 6, 0, 1),)), ErrorCode.UNKNOWN_SERVER_ERROR),
        (PersistedState(0, 5, (PersistedBatch(8, 6, 0, 1),)), ErrorCode.UNKNOWN_SERVER_ERROR),
        (PersistedState(0, 5, (PersistedBatch(5, 6, 9, 1),)), ErrorCode.UNKNOWN_SERVER_ERROR),
        (
            PersistedState(0, 5, (PersistedBatch(5, 6, 0, 1), PersistedBatch(6, 7, 0, 1))),
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
    ],
)
def test_a_load_that_fails(state: PersistedState | ErrorCode, error: ErrorCode) -> None:
    partition = SharePartition(0, Settings())
    assert partition.start_loading()
    assert not partition.start_loading()
    assert partition.loaded(state, lambda: None) is error
    assert partition.state is SharePartitionState.FAILED


def test_a_load_that_ends_after_its_share_partition_was_fenced() -> None:
    partition = SharePartition(0, Settings())
    assert partition.start_loading()
    partition.fence()
    assert partition.loaded(PersistedState(0, 0, ()), lambda: 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.state is SharePartitionState.FENCED


def test_a_delivery_count_that_no_leader_wrote_stays_within_a_response() -> None:
    one = OnePartition(PersistedBatch(0, 0, 0, 2**15 - 1))
    assert one.fetch("A", (0, 0)) == [(0, 0, 2**15 - 1)]


def test_one_fetch_reads_at_a_time(one: OnePartition) -> None:
    assert one.partition.lock_fetch("first")
    assert not one.partition.lock_fetch("second")
    one.partition.unlock_fetch("second")
    assert not one.partition.lock_fetch("second")
    one.partition.unlock_fetch("first")
    assert one.partition.lock_fetch("second")


def test_a_share_partition_that_is_fenced_still_lets_its_locks_run_out(one: OnePartition) -> None:
    one.fetch("A", (0, 3))
    one.partition.fence()
    assert not one.partition.is_active
    assert one.wait(LOCK_MS) == [(0, 3)]


def test_batches_of_aborted_transactions_are_archived_when_they_are_acquired(one: OnePartition) -> None:
    acquired = one.acquire("A", *LOG)
    left = one.partition.drop_aborted(acquired, [ReadRange(4, 7)])
    assert [tuple(row) for row in left.rows] == [(0, 3, 1), (8, 11, 1)]
    assert left.record_count == 8
    assert one.states() == "0-3 ACQUIRED 1 A, 4-7 ARCHIVED 1, 8-11 ACQUIRED 1 A"
    assert (one.writes, one.partition.delivery_complete_count) == ([], 4)


# --- records of a split batch that are not next to each other


@pytest.fixture
def scattered() -> OnePartition:
    """B holds 1, 3, 5 and 7 of ten records, which A has released; A still holds the others."""
    one = OnePartition()
    one.fetch("A", (0, 9))
    one.acknowledge("A", *((offset, offset, (RELEASE,)) for offset in (1, 3, 5, 7)))
    one.now = 10
    assert one.fetch("B", (0, 9)) == [(offset, offset, 2) for offset in (1, 3, 5, 7)]
    return one


def test_the_one_lock_of_scattered_records_runs_out_record_by_record(scattered: OnePartition) -> None:
    assert scattered.acknowledge("B", (1, 1, (ACCEPT,)), (5, 5, (RELEASE,))) is ErrorCode.NONE
    scattered.now = 0
    assert scattered.wait(LOCK_MS) == [(offset, offset) for offset in (0, 2, 4, 6, 8, 9)]
    assert scattered.wait(9) == []
    assert scattered.wait(1) == [(3, 3), (7, 7)]
    assert scattered.partition.next_deadline() is None


def test_a_write_that_fails_gives_scattered_records_back_to_their_holder(scattered: OnePartition) -> None:
    before = scattered.states()
    scattered.holds_back = True
    assert scattered.acknowledge("B", (1, 1, (ACCEPT,)), (3, 3, (RELEASE,)), (5, 5, (REJECT,))) is None
    scattered.answer(scattered.writes[-1], ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scattered.states() == before
    assert scattered.partition.delivery_complete_count == 0


@pytest.mark.parametrize("wrong", [2, 3], ids=["held by another member", "twice in one request"])
def test_one_record_that_the_member_does_not_hold_undoes_those_before(scattered: OnePartition, wrong: int) -> None:
    before = scattered.states()
    asked = ((1, 1, (ACCEPT,)), (3, 3, (RELEASE,)), (wrong, wrong, (ACCEPT,)))
    assert scattered.acknowledge("B", *asked) is ErrorCode.INVALID_RECORD_STATE
    assert scattered.states() == before


def test_each_rejected_record_is_a_dead_letter_of_its_own(scattered: OnePartition) -> None:
    scattered.settings.has_dead_letters = True
    scattered.acknowledge("B", (3, 3, (REJECT,)), (5, 5, (ACCEPT,)), (7, 7, (REJECT,)))
    assert [(each.first_offset, each.last_offset, each.delivery_count) for each in scattered.letters] == [
        (3, 3, 2),
        (7, 7, 2),
    ]
