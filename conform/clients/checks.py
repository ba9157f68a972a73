"""Checks: each is a function of a client's life, and says whether the client did what Kafka's protocol expects.

Requests that were in flight when an error came are not held against a client: each check lets a few pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

from rejoin.conform.clients.observed import (
    HEARTBEATS,
    OF_COORDINATORS,
    ClientLife,
    ClientOutcome,
    ClientVerdict,
    generation_of,
    is_accepted,
    lines,
    member_of,
    only,
)
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.protocol.errors import ErrorCode

Check: TypeAlias = Callable[[ClientLife], ClientVerdict]

MOST_IN_FLIGHT: Final = 1
"""Requests of one API that a client may have sent before it read an error."""

HEARTBEATS_IN_FLIGHT_MS: Final = 1_000
"""Time after a refusal in which heartbeats are allowed: some clients send one an interval, answered or not."""

MOST_TO_ONE_COORDINATOR: Final = 4
"""Requests of all APIs that a client may send to a coordinator after it was refused there."""

MOST_REPEATED_JOINS: Final = 2
"""JoinGroups of one member that may be unanswered; the broker answers the last one."""

LEAST_BACKOFF_MS: Final = 10
"""Mean time between two attempts below which a client is said not to wait. Kafka's retry.backoff.ms is 100."""

_PASSED: Final = ClientVerdict(ClientOutcome.PASSED)


def failed(reason: str, requests: Sequence[RecordedRequest]) -> ClientVerdict:
    """A verdict with the requests that show it."""
    return ClientVerdict(ClientOutcome.FAILED, reason, lines(requests))


def not_applicable(reason: str) -> ClientVerdict:
    """A verdict on a client that never met the trouble."""
    return ClientVerdict(ClientOutcome.NOT_APPLICABLE, reason)


def lives_calmly(life: ClientLife) -> ClientVerdict:
    """Joins with the id that it was given, and keeps its membership by heartbeats."""
    if life.speaks_consumer_protocol:
        beats = [each for each in only(life.requests, "ConsumerGroupHeartbeat") if is_accepted(each)]
        return _PASSED if len(beats) > 1 else failed("no heartbeats after the first one", life.requests)
    joins = list(only(life.requests, "JoinGroup"))
    for index, join in enumerate(joins[:-1]):
        if ErrorCode.MEMBER_ID_REQUIRED.name in join.errors():
            given: Any = join.response
            if member_of(joins[index + 1]) != given.member_id:
                return failed("joined without the member id that it was given", joins)
    return _is_well_again(life.requests, 0) or _PASSED


def finds_coordinator(error: ErrorCode, life: ClientLife) -> ClientVerdict:
    """Asks for the coordinator after it was refused, and goes on there as the same member."""
    hit = life.index_of(error, OF_COORDINATORS)
    if hit is None:
        return not_applicable(f"no request was answered with {error.name}")
    rest = life.after(hit)
    found = next((index for index, each in enumerate(rest) if each.api == "FindCoordinator"), None)
    sent = _not_in_flight(life.requests[hit], only(rest[:found], *OF_COORDINATORS))
    before = [each for each in sent if not is_accepted(each)]
    if found is None:
        return failed(f"did not look for the coordinator after {error.name}", life.requests[hit:])
    if len(before) > MOST_TO_ONE_COORDINATOR:
        return failed(f"sent {len(before)} requests to a coordinator that answered {error.name}", life.requests[hit:])
    for join in only(rest, "JoinGroup"):
        if not member_of(join):
            return failed("joined as a new member; the old one stays until its session ends", life.requests[hit:])
    return _waits_between(list(only(rest, "FindCoordinator"))) or _is_well_again(rest, hit) or _PASSED


def rejoins(
    error: ErrorCode, by: Sequence[str], member: Literal["same", "none", "any"], may_go_on: bool, life: ClientLife
) -> ClientVerdict:
    """Joins again after an error, with the member id that the error leaves it.

    ``may_go_on``: whether its generation counts until it joins, so that it may send heartbeats and commit.
    """
    hit = life.index_of(error, by)
    if hit is None:
        return not_applicable(f"no {' or '.join(by)} was answered with {error.name}")
    asked, rest = life.requests[hit], life.after(hit)
    shown = life.requests[hit:]
    if not may_go_on:
        for api, does in (("Heartbeat", "sent heartbeats"), ("OffsetCommit", "committed")):
            old = [
                each
                for each in _not_in_flight(asked, only(rest, api))
                if member_of(each) == member_of(asked) and generation_of(each) == generation_of(asked)
            ]
            if len(old) > MOST_IN_FLIGHT:
                return failed(f"{does} as the member and generation that {error.name} had ended", [asked, *old])
    join = next(only(rest, "JoinGroup"), None)
    if join is None:
        return failed(f"did not join again after {error.name}", shown)
    # The broker refuses the old member id once more; a client that then joins without one is right.
    with_old = [each for each in only(rest, "JoinGroup") if member_of(each) == member_of(asked)]
    if member == "none" and len(with_old) > MOST_IN_FLIGHT:
        return failed(f"joined with the member id that {error.name} had ended", shown)
    if member == "same" and member_of(join) != member_of(asked):
        return failed("joined as another member; the old one stays until its session ends", shown)
    return _keeps_generation(rest) or _is_well_again(rest, hit) or _PASSED


def joins_after(error: ErrorCode | None, api: str, life: ClientLife) -> ClientVerdict:
    """Joins again after its first JoinGroup or SyncGroup failed, or after its answer was lost."""
    index = next(
        (
            index
            for index, each in enumerate(life.requests)
            if each.api == api and (each.response is None if error is None else error.name in each.errors())
        ),
        None,
    )
    if index is None:
        return not_applicable(f"there was no {api} to be refused")
    rest = life.after(index)
    joins = list(only(rest, "JoinGroup"))
    if not joins:
        return failed(f"did not join again after its {api}", life.requests[index:])
    given = member_of(life.requests[index])
    if given and member_of(joins[0]) != given:
        return failed("joined as another member; the old one stays until its session ends", life.requests[index:])
    return _waits_between(joins) or _keeps_generation(rest) or _is_well_again(rest, index) or _PASSED


def reconnects(life: ClientLife) -> ClientVerdict:
    """Goes on as the same member after the connection ended without an answer to a heartbeat."""
    hit = next((i for i, each in enumerate(life.requests) if each.api in HEARTBEATS and each.mark > life.since), None)
    if hit is None:
        return not_applicable("it sent no heartbeat")
    rest = life.after(hit)
    joined = next((each for each in only(rest, "JoinGroup") if not member_of(each)), None)
    if joined is not None:
        return failed("joined as a new member; the old one stays until its session ends", life.requests[hit:])
    return _is_well_again(rest, hit) or _PASSED


def commits_again(error: ErrorCode | None, life: ClientLife) -> ClientVerdict:
    """Commits the same or a later position after a commit that failed, or whose answer was lost."""
    hit = next(
        (
            index
            for index, each in enumerate(life.requests)
            if each.api == "OffsetCommit"
            and each.mark > life.since
            and (each.response is None if error is None else error.name in each.errors())
        ),
        None,
    )
    if hit is None:
        return not_applicable("it never committed")
    wanted = _offsets(life.requests[hit])
    after = list(only(life.after(hit), "OffsetCommit"))
    for each in after:
        committed = _offsets(each) if is_accepted(each) else {}
        wanted = {at: offset for at, offset in wanted.items() if committed.get(at, -1) < offset}
    if not after:
        return failed("did not commit again", life.requests[hit:])
    if wanted:
        at, offset = next(iter(wanted.items()))
        return failed(f"never committed offset {offset} of partition {at[1]}", life.requests[hit:])
    return _waits_between(after[:10]) or _PASSED


def stays_fenced(life: ClientLife) -> ClientVerdict:
    """Ends its membership for good: another process has its group.instance.id now."""
    joins: list[Any] = [each.request for each in only(life.requests, "JoinGroup")]
    if not any(each.group_instance_id for each in joins):
        return not_applicable("it has no group.instance.id")
    hit = life.fenced_at()
    if hit is None:
        return not_applicable("it sent nothing after the other process had joined")
    rest = life.after(hit)
    if any(not member_of(each) or is_accepted(each) for each in only(rest, "JoinGroup")):
        return failed("joined again, and so fences the other process", life.requests[hit:])
    # A join with the old member id is refused, and harms no one.
    for api in ("Heartbeat", "OffsetCommit", "JoinGroup"):
        if len(_not_in_flight(life.requests[hit], only(rest, api))) > MOST_IN_FLIGHT:
            return failed(f"went on with {api} after it was fenced", life.requests[hit:])
    return _PASSED


def begins_with_epoch_0(error: ErrorCode, life: ClientLife) -> ClientVerdict:
    """Joins again with epoch 0 by the consumer protocol, with its own member id."""
    hit = life.index_of(error, ("ConsumerGroupHeartbeat",))
    if hit is None:
        return not_applicable("it does not use the consumer protocol")
    rest = list(only(life.after(hit), "ConsumerGroupHeartbeat"))
    joined = next((index for index, each in enumerate(rest) if generation_of(each) == 0), None)
    if joined is None:
        return failed(f"did not join with epoch 0 after {error.name}", life.requests[hit:])
    if joined > MOST_IN_FLIGHT:
        return failed(f"sent {joined} heartbeats with the old epoch after {error.name}", life.requests[hit:])
    if member_of(rest[joined]) != member_of(life.requests[hit]):
        return failed("joined with another member id", life.requests[hit:])
    return _PASSED if any(map(is_accepted, rest[joined:])) else failed("was not let in again", life.requests[hit:])


def leaves(life: ClientLife) -> ClientVerdict:
    """Leaves the group when it is closed, unless it is a static member."""
    joins = list(only(life.requests, "JoinGroup", "ConsumerGroupHeartbeat"))
    request: Any = joins[-1].request if joins else None
    if getattr(request, "group_instance_id", None) or getattr(request, "instance_id", None):
        return not_applicable("it has a group.instance.id")
    rest = [each for each in life.requests if each.mark > life.since]
    if any(each.api == "LeaveGroup" or (each.api == HEARTBEATS[1] and generation_of(each) == -1) for each in rest):
        return _PASSED
    if not life.closed:
        return not_applicable("it did not end by itself after SIGTERM")
    return failed("ended without leaving the group, which waits for the end of the session", rest)


def leaves_in_rebalance(life: ClientLife) -> ClientVerdict:
    """Ends and leaves the group although its JoinGroup waits."""
    joins = [each for each in only(life.requests, "JoinGroup") if each.mark > life.since]
    if not joins:
        return not_applicable("it did not join again")
    if life.hangs:
        return failed("ran on after SIGTERM while its JoinGroup waited", joins)
    return leaves(life)


def waits_for_join(life: ClientLife) -> ClientVerdict:
    """Waits for the answer to its JoinGroup as long as the rebalance lasts, and goes on as the same member."""
    hit = life.index_of(ErrorCode.REBALANCE_IN_PROGRESS, ("Heartbeat", "OffsetCommit"))
    if hit is None:
        return not_applicable("no Heartbeat or OffsetCommit was answered with REBALANCE_IN_PROGRESS")
    rest, shown = life.after(hit), life.requests[hit:]
    joins = list(only(rest, "JoinGroup"))
    if any(member_of(each) != member_of(life.requests[hit]) for each in joins):
        return failed("joined as another member while its JoinGroup waited", shown)
    unanswered = [each for each in joins if each.response is None]
    if len(unanswered) > MOST_REPEATED_JOINS:
        return failed(f"sent {len(unanswered)} JoinGroups without waiting for an answer", unanswered)
    if not any(map(is_accepted, joins)):
        return failed("did not join again", shown)
    return _keeps_generation(rest) or _is_well_again(rest, hit) or _PASSED


def reads_new_partitions(first: int, count: int, life: ClientLife) -> ClientVerdict:
    """Reads each partition that was added to its topic, once it has seen it in the metadata."""
    behind = [each for each in life.requests if each.mark > life.since]
    wanted = set(range(first, first + count))
    left = wanted - {partition for each in only(behind, "Fetch") for partition in _fetched(each)}
    if not left:
        return _PASSED
    if not life.speaks_consumer_protocol and not any(only(behind, "Metadata")):
        return not_applicable("it asked for no metadata in time; see its metadata.max.age.ms")
    if not life.speaks_consumer_protocol and not any(only(behind, "JoinGroup")):
        return failed("saw the new partitions in its metadata, and did not join again", behind)
    return failed(f"never fetched from partition {min(left)}", behind)


def survives_restart(life: ClientLife) -> ClientVerdict:
    """Connects again after all brokers were away, asks for the coordinator, and goes on as the same member."""
    behind = [each for each in life.requests if each.mark > life.since]
    ids = {member_of(each) for each in only(life.requests, *HEARTBEATS) if each.mark <= life.since}
    if not ids:
        return not_applicable("it sent no heartbeat before")
    joins = list(only(behind, "JoinGroup"))
    if any(not member_of(each) for each in joins):
        return failed("joined as a new member; the old one stays until its session ends", behind)
    if not behind:
        return failed("did not connect again", life.requests[-1:])
    if not any(only(behind, "FindCoordinator")):
        return failed("did not look for the coordinator", behind)
    beats = [each for each in only(behind, *HEARTBEATS) if is_accepted(each)]
    if any(member_of(each) not in ids for each in beats):
        return failed("goes on as another member; the old one stays until its session ends", behind)
    return _waits_between(list(only(behind, "FindCoordinator"))) or _is_well_again(behind, 0) or _PASSED


def survives_errors(api: str, errors: Sequence[ErrorCode], life: ClientLife) -> ClientVerdict:
    """Sends a request again after each of these errors, one after the other, and is a member at the end."""
    at = -1
    for number, error in enumerate(errors):
        later = range(at + 1, len(life.requests))
        found = next(
            (
                index
                for index in later
                if life.requests[index].api == api
                and life.requests[index].mark > life.since
                and error.name in life.requests[index].errors()
            ),
            None,
        )
        if found is None and number == 0:
            return not_applicable(f"no {api} was answered with {error.name}")
        if found is None:
            return failed(f"did not send {api} again after {errors[number - 1].name}", life.requests[at:])
        at = found
    rest = life.after(at)
    if not any(map(is_accepted, only(rest, api))):
        return failed(f"did not send {api} again after {errors[-1].name}", life.requests[at:])
    return _insists(api, errors, life) or _keeps_generation(rest) or _is_well_again(rest, at) or _PASSED


def does_not_insist(api: str, errors: Sequence[ErrorCode], life: ClientLife) -> ClientVerdict:
    """Stops, or waits between its attempts, where no attempt can help."""
    names = {error.name for error in errors}
    if not any(names & set(each.errors()) for each in only(life.requests, api)):
        return not_applicable(f"it sent no {api}")
    return _insists(api, errors, life) or _PASSED


def _insists(api: str, errors: Sequence[ErrorCode], life: ClientLife) -> ClientVerdict | None:
    """A failure if refused attempts follow each other without time between them; commits of the same partitions."""
    names = {error.name for error in errors}
    attempts: dict[frozenset[object], list[RecordedRequest]] = {}
    for each in only(life.requests, api):
        if names & set(each.errors()):
            what = frozenset(_offsets(each)) if api == "OffsetCommit" else frozenset[object]()
            attempts.setdefault(what, []).append(each)
    return next(filter(None, map(_waits_between, attempts.values())), None)


def of_classic(check: Check) -> Check:
    """The check for clients of the classic protocol alone."""

    def judged(life: ClientLife) -> ClientVerdict:
        return not_applicable("it uses the consumer protocol") if life.speaks_consumer_protocol else check(life)

    return judged


def of_consumer_protocol(check: Check) -> Check:
    """The check for clients of the consumer protocol alone."""

    def judged(life: ClientLife) -> ClientVerdict:
        return check(life) if life.speaks_consumer_protocol else not_applicable("it does not use the consumer protocol")

    return judged


def _is_well_again(requests: Sequence[RecordedRequest], hit: int) -> ClientVerdict | None:
    """A failure unless a heartbeat is accepted, behind the last join if there is one."""
    joins = [index for index, each in enumerate(requests) if each.api == "JoinGroup" and is_accepted(each)]
    behind = requests[joins[-1] + 1 :] if joins else requests
    if any(is_accepted(each) for each in only(behind, *HEARTBEATS)):
        return None
    return failed("no heartbeat was accepted afterwards: it is no member any more", requests)


def _keeps_generation(requests: Sequence[RecordedRequest]) -> ClientVerdict | None:
    """A failure if a member goes on with an older generation than the one of its last join."""
    generations: dict[str, int] = {}
    synced: dict[str, int] = {}
    old: list[RecordedRequest] = []
    late: list[RecordedRequest] = []
    for each in requests:
        if each.api == "JoinGroup" and is_accepted(each):
            joined: Any = each.response
            generations[joined.member_id] = joined.generation_id
            old = []
        elif each.api in ("Heartbeat", "OffsetCommit", "SyncGroup"):
            generation = generation_of(each)
            member = member_of(each)
            if generation is not None and generation < generations.get(member, generation):
                old.append(each)
                # Behind SyncGroup nothing of the old generation is in flight: it would have come before it.
                late += [each] if generation < synced.get(member, generation) else []
            elif each.api == "SyncGroup" and is_accepted(each):
                synced[member] = generations.get(member, 0)
        for shown in (old, late):
            if len(shown) > MOST_IN_FLIGHT:
                return failed("went on with the old generation after it had joined", shown)
    return None


def _waits_between(attempts: Sequence[RecordedRequest]) -> ClientVerdict | None:
    """A failure if three or more attempts come without time between them."""
    refused = [each for each in attempts if not is_accepted(each)]
    if len(refused) < 3:
        return None
    mean = (refused[-1].at_ms - refused[0].at_ms) / (len(refused) - 1)
    if mean >= LEAST_BACKOFF_MS:
        return None
    return failed(f"sent {refused[0].api} {len(refused)} times without waiting in between", refused)


def _not_in_flight(refused: RecordedRequest, requests: Iterable[RecordedRequest]) -> list[RecordedRequest]:
    """Requests that were not sent before the refusal could be read, as far as that can be said of heartbeats."""
    end = refused.at_ms + HEARTBEATS_IN_FLIGHT_MS
    return [each for each in requests if each.api not in HEARTBEATS or each.at_ms > end]


def _fetched(sent: RecordedRequest) -> list[int]:
    """Partitions in a Fetch that was answered."""
    request: Any = sent.request
    return [each.partition for topic in request.topics for each in topic.partitions] if is_accepted(sent) else []


def _offsets(sent: RecordedRequest) -> dict[tuple[str, int], int]:
    request: Any = sent.request
    return {
        (topic.name or str(topic.topic_id), each.partition_index): each.committed_offset
        for topic in request.topics
        for each in topic.partitions
    }
