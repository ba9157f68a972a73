"""All paths of free clients to a depth, as a graph: each edge with its request, and with what is expected after it.

States at one depth are one state where their forms are equal and their members have the same names. A member's name is
the number of the answer that named it first, so a path reads the same whatever ids a coordinator has drawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
)
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.simulation.explore.canonical.form import FAR
from rejoin.simulation.explore.choosing import Choice, Kind
from rejoin.simulation.explore.copying import RunSnapshot
from rejoin.simulation.explore.free.client import FreeClient
from rejoin.simulation.explore.free.clients import FreeClients
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.network import Exchange
from rejoin.simulation.scenario.model import Scenario

_LONG: Final = r"[A-Za-z0-9-]*?-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SHORT: Final = r"[A-Za-z0-9_-]{22}"
ID: Final = re.compile(rf"{_LONG}|(?<=\"){_SHORT}(?=\"(?!:))")
"""An id in JSON: of a member, or of a topic."""
WHOLE_ID: Final = re.compile(f"{_LONG}|{_SHORT}")
UNNAMED: Final = "#?"
END: Final = -1
"""In place of the number of a state after which no step is taken."""
_LEFT_WAITING: Final = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
_DESCRIBE_VERSION: Final = 5
_DESCRIBES: Final = "describes"
"""The token of requests that look at the group after a step."""


@dataclass(slots=True)
class PathState:
    """A state at the end of some path: the run, the names of ids, and which requests wait."""

    run: ExploredRun
    names: dict[str, str]
    waiting: list[list[int]]
    """By client: the numbers of its requests that have no answer yet."""

    @classmethod
    def beginning(cls, scenario: Scenario) -> PathState:
        """The state before the first step."""
        run = ExploredRun(scenario)
        # Ids of topics look like those that a coordinator gives to members, and stay as they are.
        names = {topic_id: topic_id for topic_id in (_topic_id(run, each) for each in run.simulation.cluster.topics)}
        return cls(run, names, [[] for _ in free_of(run).clients])


@dataclass(slots=True)
class PathGraph:
    """The edges of each state as JSON, by the state's number; ``END`` is what follows the last step of every path."""

    header: dict[str, Any]
    states: list[str] = field(default_factory=list)
    followers: list[list[int]] = field(default_factory=list)
    """The number of the state that each edge leads to."""

    @property
    def edges(self) -> int:
        return sum(map(len, self.followers))

    def paths(self) -> int:
        """Count of the paths from the beginning to the last depth."""
        count = [0] * len(self.states)
        for number in reversed(range(len(self.states))):
            count[number] = sum(1 if to == END else count[to] for to in self.followers[number])
        return count[0]

    def lines(self) -> Iterator[str]:
        """The graph as lines of JSON: the header, then the edges of each state."""
        yield json.dumps(self.header)
        yield from self.states

    def add(self, edges: list[dict[str, Any]]) -> None:
        """Add the edges of the next state."""
        self.states.append(json.dumps(edges))
        self.followers.append([edge["to"] for edge in edges])


def graph_of(scenario: Scenario, depth: int) -> PathGraph:
    """All paths of a world with free clients and without faults, to a depth."""
    root = PathState.beginning(scenario)
    graph = PathGraph(header_of(scenario, root.run))
    # What waits to be gone on from is kept as snapshots: each edge begins with a copy.
    frontier = [RunSnapshot(root)]
    met = 1
    for level in range(depth):
        is_last = level + 1 == depth
        following: list[RunSnapshot[PathState]] = []
        numbers: dict[tuple[object, ...], int] = {}
        for snapshot in frontier:
            edges = []
            for choice in choices(snapshot.restore().run):
                after = snapshot.restore()
                edge = take(after, choice)
                edge["to"] = END
                if not is_last:
                    key = _key(after)
                    if key not in numbers:
                        numbers[key] = met
                        met += 1
                        following.append(RunSnapshot(after))
                    edge["to"] = numbers[key]
                edges.append(edge)
            graph.add(edges)
        frontier = following
    return graph


def graph_of_paths(scenario: Scenario, paths: Iterable[Sequence[str]]) -> PathGraph:
    """Some paths, each by the labels of its steps. They share nothing but the beginning."""
    first: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    for labels in paths:
        state = PathState.beginning(scenario)
        for at, label in enumerate(labels):
            choice = next(each for each in choices(state.run) if state.run.label(each) == label)
            edge = take(state, choice)
            (later if at else first).append(edge)
            edge["to"] = END if at + 1 == len(labels) else len(later) + 1
    graph = PathGraph(header_of(scenario, PathState.beginning(scenario).run))
    graph.add(first)
    for edge in later:
        graph.add([edge])
    return graph


def choices(run: ExploredRun) -> list[Choice]:
    """The choices, but for the look for expired offsets: it is due in days, and the walk leaves it out."""
    timed = run.world.timed()
    is_far = timed is None or timed[0] - run.world.now > FAR
    return [choice for choice in run.choices() if not (is_far and choice.kind is Kind.FIRE)]


def free_of(run: ExploredRun) -> FreeClients:
    """The free clients of a run."""
    free = run.choosing.free
    assert free is not None, "the world has free clients"
    return free


def header_of(scenario: Scenario, run: ExploredRun) -> dict[str, Any]:
    group_id = free_of(run).free.group
    topics = run.simulation.cluster.topics
    return {
        "group": group_id,
        "settings": _as_text(scenario.coordinator.settings),
        "groupSettings": _as_text(scenario.groups[group_id].settings),
        "topics": [[name, _topic_id(run, name), len(topic.partitions)] for name, topic in topics.items()],
    }


def _topic_id(run: ExploredRun, topic: str) -> str:
    node = run.simulation.cluster.nodes[0].core
    assert node is not None, "the node is up"
    return next(topic_id for topic_id in node.topic_ids() if node.topic_named(topic_id) == topic)


def _as_text(settings: Any) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def take(after: PathState, choice: Choice) -> dict[str, Any]:
    """Take a step. Returns its edge: the request or the time that passes, and what is expected of Kafka."""
    run = after.run
    free = free_of(run)
    edge: dict[str, Any] = {"label": run.label(choice)}
    before = run.world.now
    if choice.kind is Kind.SEND:
        client, _ = free.sender(choice.where)
        sent = free.sent(choice.where)
        edge["api"] = type(sent.request).__name__.removesuffix("Request")
        edge["version"] = sent.version
        edge["sender"] = client.number
        edge["client"] = client.name
        edge["body"] = _with_names(sent.request.to_json(sent.version).decode(), after.names)
    run.take(choice)
    fresh = -1
    if choice.kind is Kind.SEND:
        fresh = client.last_id
        after.waiting[client.number].append(fresh)
    else:
        edge["wait"] = run.world.now - before
    edge["answers"] = [_answer(after, exchange, is_fresh=exchange.request_id == fresh) for exchange in free.answers()]
    answered = {exchange.request_id for exchange in free.answers()}
    after.waiting = [[each for each in numbers if each not in answered] for numbers in after.waiting]
    edge["state"] = _described(run, after.names)
    timed = run.world.timed()
    edge["deadline"] = -1 if timed is None or timed[0] - run.world.now > FAR else timed[0] - run.world.now
    return edge


def _answer(after: PathState, exchange: Exchange, *, is_fresh: bool) -> list[object]:
    """An answer: whose, to which of its requests, whether Kafka may leave it out, and the text."""
    sender = exchange.connection.client
    assert isinstance(sender, FreeClient), "all requests are those of free clients"
    assert exchange.response is not None, "it is answered"
    index = after.waiting[sender.number].index(exchange.request_id)
    may_wait = not is_fresh and _kafka_may_not_answer(exchange.request, exchange.response)
    return [sender.number, index, may_wait, _answer_text(exchange, after.names)]


def _kafka_may_not_answer(request: Request, response: Response) -> bool:
    """True where Kafka may leave this request without an answer: it was replaced, or its member was removed."""
    if not isinstance(request, (JoinGroupRequest, SyncGroupRequest)):
        return False
    return getattr(response, "error_code", ErrorCode.NONE) in _LEFT_WAITING


def _with_names(text: str, names: dict[str, str]) -> str:
    return ID.sub(lambda found: names.get(found[0], UNNAMED), text)


def _name(member_id: str, names: dict[str, str]) -> str:
    """A member id by its name; one that a client has chosen is itself."""
    return names.get(member_id, UNNAMED) if WHOLE_ID.fullmatch(member_id) else member_id


def _answer_text(exchange: Exchange, names: dict[str, str]) -> str:
    """An answer as Kafka's JSON; members that it names first get the next names."""
    assert exchange.response is not None, "it is answered"
    data = json.loads(exchange.response.to_json(exchange.version))
    data.pop("errorMessage", None)
    members = data.get("members")
    if isinstance(members, list) and len(members) > 1:
        members.sort(key=lambda each: _member_order(each, names))

    def named(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"#{len(names) + 1}")

    return ID.sub(named, json.dumps(data, separators=(",", ":")))


def _member_order(member: dict[str, Any], names: dict[str, str]) -> str:
    instance_id = member.get("groupInstanceId") or "null"
    return f"{member.get('metadata', '')}|{instance_id}|{_name(member['memberId'], names)}"


def _described(run: ExploredRun, names: dict[str, str]) -> str:
    """The group as DescribeGroups and ConsumerGroupDescribe show it."""
    group_id = free_of(run).free.group
    found = []
    classic = _asked(run, DescribeGroupsRequest(groups=(group_id,)), _DESCRIBE_VERSION)
    assert isinstance(classic, DescribeGroupsResponse), "groups are described"
    for group in classic.groups:
        found.append(f"{group.group_state} {group.protocol_data}")
        found += sorted(
            f"{_name(each.member_id, names)} {each.group_instance_id or 'null'} {each.client_id} "
            f"{each.member_metadata.hex()} {each.member_assignment.hex()}"
            for each in group.members
        )
    request = ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False)
    modern = _asked(run, request, 1)
    assert isinstance(modern, ConsumerGroupDescribeResponse), "groups are described"
    for described in modern.groups:
        found.append(f"{described.group_state} {described.group_epoch} {described.assignment_epoch}")
        found += sorted(
            f"{_name(each.member_id, names)} {each.instance_id or 'null'} {each.member_epoch} "
            f"{_partitions(each.assignment)} {_partitions(each.target_assignment)}"
            for each in described.members
        )
    return "; ".join(found)


def _partitions(assignment: DescribedAssignment) -> str:
    found = (
        f"{topic.topic_name}-{partition}" for topic in assignment.topic_partitions for partition in topic.partitions
    )
    return f"[{', '.join(sorted(found))}]"


def _asked(run: ExploredRun, request: Request, version: int) -> Response:
    """The answer to a request that changes nothing."""
    node = run.simulation.cluster.nodes[0].core
    assert node is not None, "the node is up"
    for effect in node.step(Received(_DESCRIBES, request, Context(version)), run.world.now):
        if isinstance(effect, Reply) and effect.token == _DESCRIBES:
            return effect.response
    raise AssertionError("descriptions are answered at once")


def _key(state: PathState) -> tuple[object, ...]:
    """Equal for two states at one depth that count as one."""
    run, names = state.run, state.names
    free = free_of(run)
    group = run.simulation.cluster.nodes[0].group(free.free.group)
    ids: Iterable[str] = () if group is None else (*group.members, *group.pending_members)
    named = tuple(names.get(each, UNNAMED) for each in (*ids, *(client.member_id for client in free.clients)))
    return run.digest(), named, len(names), tuple(map(len, state.waiting))
