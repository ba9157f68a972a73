"""What the events say of who owned what before and after a rebalance, and what moved."""

from __future__ import annotations

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import RebalanceCompleted
from rejoin.transcript.interpreter import TranscriptPlayer


class Listening(TranscriptPlayer):
    """A player that keeps the events themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        super().on_event(event)


def last_rebalance(commands: list[str]) -> RebalanceCompleted:
    player = Listening()
    player.play(commands)
    return [event for event in player.events if isinstance(event, RebalanceCompleted)][-1]


SETTLED = ["topic t 3", "completing a b c", "b sync", "c sync", "a sync give a=t:0 b=t:1 c=t:2"]


def test_a_member_that_fell_silent_is_among_those_who_owned_before() -> None:
    done = last_rebalance(
        [*SETTLED, "beating a b", "advance to=session", "a join", "b join", "b sync", "a sync give a=t:0,2 b=t:1"]
    )
    assert done.cause.cause == "session-expiry"
    assert done.owned_before == {"a-1": {"t": [0]}, "b-2": {"t": [1]}, "c-3": {"t": [2]}}
    assert done.owned_after == {"a-1": {"t": [0, 2]}, "b-2": {"t": [1]}}
    assert (done.members_before, done.members_after) == (["a-1", "b-2", "c-3"], ["a-1", "b-2"])
    assert (done.moved, done.regained) == (0, 1)


def test_a_leader_that_left_is_the_previous_leader() -> None:
    done = last_rebalance([*SETTLED, "a leave", "b join", "c join", "c sync", "b sync give b=t:0,1 c=t:2"])
    assert (done.previous_leader, done.leader) == ("a-1", "b-2")


def test_what_had_no_owner_for_a_generation_counts_as_moved() -> None:
    done = last_rebalance(
        [
            *SETTLED,
            "c join protocols=range:t+u",
            "a join",
            "b join",
            "b sync",
            "c sync",
            "a sync give a=- b=t:1 c=t:2",
            "c join protocols=range:t",
            "a join",
            "b join",
            "b sync",
            "c sync",
            "a sync give a=- b=t:1 c=t:0,2",
        ]
    )
    assert done.owned_before["a-1"] == {}
    assert (done.moved, done.regained) == (1, 0)


def test_a_coordinator_that_loaded_the_group_knows_who_owned_what() -> None:
    done = last_rebalance(
        [
            *SETTLED,
            "resign",
            "elect",
            "c leave",
            "a join",
            "b join",
            "b sync",
            "a sync give a=t:1 b=t:0,2",
        ]
    )
    assert done.owned_before == {"a-1": {"t": [0]}, "b-2": {"t": [1]}, "c-3": {"t": [2]}}
    assert (done.moved, done.regained) == (2, 1)
    assert done.previous_leader == "a-1"


def test_what_was_loaded_is_known_still_after_a_generation_without_an_owner() -> None:
    done = last_rebalance(
        [
            *SETTLED,
            "resign",
            "elect",
            "a leave",
            "b join",
            "c join",
            "c sync",
            "b sync give b=t:1 c=-",
            "c join protocols=range:t+u",
            "b join",
            "c sync",
            "b sync give b=t:1,2 c=t:0",
        ]
    )
    assert (done.moved, done.regained) == (1, 1), "t-2 was c's, t-0 of one that has gone"
