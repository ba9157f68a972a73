"""Worlds of free clients: letters, what they are made of, and what an exploration of them finds."""

from __future__ import annotations

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.free.clients import FreeClients
from rejoin.simulation.explore.paths import transcript_along
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import world_from
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import BadScenario

CLASSIC = """
topics: {t: {partitions: 2}}
groups: {g: {topics: [t], consumers: 0, session_timeout: 10s, max_poll_interval: 30s}}
coordinator: {settings: {group.initial.rebalance.delay.ms: 0}}
explore: {depth: 4, faults: 0, free: {group: g, clients: 2, letters: LETTERS}}
"""
CONSUMER = """
topics: {t: {partitions: 2}}
groups:
  g: {topics: [t], consumers: 0, protocol: consumer, max_poll_interval: 30s,
      settings: {consumer.session.timeout.ms: 45000}}
coordinator: {settings: {group.consumer.assignment.interval.ms: 0}}
explore: {depth: 4, faults: 0, free: {group: g, clients: 2, letters: LETTERS}}
"""
CLASSIC_LETTERS = ("join", "join own", "sync as leader", "leave")
CONSUMER_LETTERS = ("beat 0", "beat", "beat, owns nothing", "beat -1")


def world(text: str, *letters: str) -> Scenario:
    return world_from(text.replace("LETTERS", str(list(letters))))


def free_of(run: ExploredRun) -> FreeClients:
    assert run.choosing.free is not None
    return run.choosing.free


def played(run: ExploredRun, *labels: str) -> list[str]:
    """Each step's answers, as the errors' names; a step is named by the beginning of its label."""
    errors = []
    for label in labels:
        choice = next(each for each in run.choices() if run.label(each).startswith(label))
        run.take(choice)
        errors += [getattr(each.response, "error_code", ErrorCode.NONE).name for each in free_of(run).answers()]
    return errors


def test_a_lone_client_leads_its_group() -> None:
    run = ExploredRun(world(CLASSIC, "classic"))
    assert "free-0: sync as leader" not in map(run.label, run.choices())
    joined = played(run, "free-0: join", "free-0: join own", "time", "free-0: heartbeat", "free-0: sync as leader")
    assert joined == ["MEMBER_ID_REQUIRED", "NONE", "NONE", "NONE"]
    assert played(run, "free-0: heartbeat, old", "free-1: heartbeat unknown") == [
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
    ]
    assert played(run, "free-1: join", "free-1: join own", "free-0: heartbeat") == [
        "MEMBER_ID_REQUIRED",
        "REBALANCE_IN_PROGRESS",
    ]
    assert played(run, "time") == ["UNKNOWN_MEMBER_ID"] or run.now > 0


def test_a_copy_goes_on_by_itself() -> None:
    run = ExploredRun(world(CLASSIC, "classic"))
    played(run, "free-0: join")
    other = run.copy()
    assert other.digest() == run.digest()
    played(other, "free-0: join own")
    assert other.digest() != run.digest()
    played(run, "free-0: join own")
    assert other.digest() == run.digest()


def test_clients_of_a_consumer_group_share_its_partitions() -> None:
    run = ExploredRun(world(CONSUMER, "consumer"))
    assert played(run, "free-0: beat 0", "free-1: beat 0", "free-0: beat", "free-0: beat, owns nothing") == ["NONE"] * 4
    assert played(run, "free-1: beat") == ["NONE"]
    assert [len(client.assigned[0].partitions) for client in free_of(run).clients if client.assigned] == [1, 1]
    assert played(run, "free-0: beat, old", "free-0: beat unknown") == ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"]


def test_a_duplicate_is_the_last_request_again() -> None:
    run = ExploredRun(world(CONSUMER, "beat 0", "again"))
    assert "free-0: again" not in map(run.label, run.choices())
    played(run, "free-0: beat 0")
    first = [client.knowledge() for client in free_of(run).clients]
    assert played(run, "free-0: again") == ["NONE"]
    assert [client.knowledge() for client in free_of(run).clients] == first


def test_requests_are_sent_in_the_version_that_a_world_names() -> None:
    versions = "versions: {JoinGroup: 0, LeaveGroup: 2}, letters: LETTERS"
    run = ExploredRun(world(CLASSIC.replace("letters: LETTERS", versions), "join", "leave"))
    assert played(run, "free-0: join", "time") == ["NONE"]
    client = free_of(run).clients[0]
    assert client.answers[0].version == 0
    played(run, "free-0: leave")
    left = client.answers[0].request
    assert isinstance(left, LeaveGroupRequest)
    assert (left.member_id, left.members) == (client.member_id, ())


@pytest.mark.parametrize(("text", "letters"), [(CLASSIC, CLASSIC_LETTERS), (CONSUMER, CONSUMER_LETTERS)])
def test_no_rule_is_broken_near_the_beginning(text: str, letters: tuple[str, ...]) -> None:
    found = explore(world(text, *letters), depth=3, liveness=False)
    assert found.counterexample is None
    assert found.edges > found.states > 20


def test_an_instance_that_joins_twice_has_a_way_to_settle() -> None:
    found = explore(world(CLASSIC, "join static"), depth=2)
    assert found.counterexample is None
    assert found.settled


def test_a_path_of_free_clients_has_a_transcript() -> None:
    scenario = world(CLASSIC, "join static")
    joins = [line for line in transcript_along(scenario, (0, 0)).splitlines() if line.startswith("a ")]
    assert joins == ["a is session=10000 rebalance=30000", "a join instance=free-0", "a join"]


def test_a_letter_that_is_unknown_is_refused() -> None:
    with pytest.raises(BadScenario, match=r"'shout' is no letter; there are 'classic', .*'join own, changed'"):
        world(CLASSIC, "shout")
    with pytest.raises(BadScenario, match=r"'clasic' is no letter; is it 'classic'\?"):
        world(CLASSIC, "clasic")


def test_an_instance_id_that_a_group_does_not_know_has_no_target() -> None:
    """Kafka: ConsumerGroup.targetAssignment, as walks through Kafka's own coordinator have shown."""
    run = ExploredRun(world(CONSUMER, "consumer"))
    played(run, "free-0: beat 0", "free-1: beat 0", "free-0: beat 0, static")
    client = free_of(run).clients[0]
    assert (client.epoch, client.assigned) == (3, ())
