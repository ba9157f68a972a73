"""Late polls and pauses of librdkafka, which logs a late poll for either."""

from __future__ import annotations

from tests.pipeline.reading.client_logs.logs import kinds, read
from tests.pipeline.recorded import tables_of_recording

LATE = (
    "MAXPOLL|orders-1#consumer-1| [thrd:main]: Application maximum poll interval (20000ms) exceeded by 9000ms (adjust "
    "max.poll.interval.ms for long-running message processing): leaving group"
)
OVER = (
    "SESSTMOUT|orders-1#consumer-1| [thrd:main]: Consumer group session timed out (in join-state steady) after 29543 "
    "ms without a successful response from the group coordinator (broker 1, last error was Success): revoking "
    "assignment and rejoining group"
)


def at(seconds: float, text: str) -> str:
    return f"%4|{1_772_532_000 + seconds:.3f}|{text}"


def test_a_process_that_was_paused_lost_its_session_and_did_not_poll_late() -> None:
    for lines in ([at(0, LATE), at(0.001, OVER)], [at(0, OVER), at(0.001, LATE)]):
        assert kinds(read(*lines)[0]) == ["heartbeat_failed"]


def test_a_late_poll_and_the_end_of_another_session_are_both_there() -> None:
    assert kinds(read(at(0, LATE))[0]) == ["poll_timeout_exceeded"]
    both = kinds(read(at(0, LATE), at(60, OVER), at(120, LATE))[0])
    assert sorted(both) == ["heartbeat_failed", "poll_timeout_exceeded", "poll_timeout_exceeded"]


def test_a_late_poll_in_a_log_without_member_ids_has_the_member_that_the_broker_saw_leave() -> None:
    for name in ("rdkafka", "drawn-rdkafka"):
        rows = [row for row in tables_of_recording(name, with_broker=True)["findings"] if row["group_id"] == "rdkafka"]
        (late,) = [row for row in rows if row["finding"] == "max-poll-exceeded"]
        assert late["rebalances"]
        assert "polled again" in late["text"]
