"""Plays a transcript in the simulation's world: commands of a few members, and what the coordinator answers and tells.

A transcript is a text file. Its first comment is the claim. Blocks are separated by empty lines; each has commands, a
line ``----`` and what must come out. ``pytest tests/transcript/test_transcripts.py --rewrite`` writes what comes out.

Commands (NAME is a member, which remembers its member id, generation and protocol from its answers):

    set KEY=VALUE ...                    settings, before anything else
    topic NAME COUNT                     create a topic, without a word; ``topic NAME to COUNT`` grows it,
                                         ``topic NAME gone`` deletes it
    group ID                             the group that is meant from here on (at first: ``g``)
    NAME is [v=9] [instance=I] [session=10000] [rebalance=60000] [protocols=range:t,sticky:t] [type=T]
                                         what NAME joins with; ``protocols=range`` is metadata that nobody can read,
                                         ``protocols=range:t/2`` other bytes than ``range:t`` for the same topics
    NAME join [id=ID] [reason=R] ...     ``NAME joins`` joins again with the id that is handed out;
                                         ``NAME restarts`` joins as somebody who remembers nothing
    NAME sync [give NAME=t:0,1 ...] [v=5] [id=] [generation=] [protocol=] [type=]
    NAME beat [id=] [instance=] [generation=]
    NAME leave [v=5] [id=] [reason=R]    ``leave NAME instance:I id:ID ...`` removes several at once, as a tool does
    NAME commit t:0=5 ... [generation=] [id=] [v=9] [retention=MS] [timestamp=MS]
                                         ``t:0=5/10`` has 10 characters of metadata;
                                         ``admin`` is in no group and has no generation
    NAME txn t:0=5 ... [producer=7]      commit within a transaction; ``end 7 commit|abort`` ends it
    fetch [stable] [all] t:0 ...         read offsets;  ``forget t:0 ...`` deletes them
    list [STATE ...] [types=T] / describe [v=5] [ID] / delete ID ... / find KEY ... [v=] [type=]
    completing NAME ...                  all of them join, without a word, until the group is CompletingRebalance
    stable NAME=t:0,1 ...                and sync, until it is Stable
    beating NAME ... / silence NAME ...  members that send heartbeats by themselves every 3 s, from now on or no more
    advance MS | advance to=session|join|sync|append|expiry
    pause / resume                       the node's timers do not ring in between, as when its process stands still;
                                         what is due by then waits for the next command that takes time
    log ok|hold|fail=ERROR               what becomes of appends;  ``stored [ERROR]`` ends the oldest one that is held
    resign / elect [hold]                lose and lead the group's offsets partition;  ``load`` finishes a held load;
                                         after ``resign writing`` appends that are held may still get into the log
    restart [KEY=VALUE ...]              another node, perhaps with other settings, takes over all that is in the log
    look / timers / written              the group, its timers, and what came into the log since the last time
    quietly COMMAND                      the command without a word about it

A line with ``+MS`` says that so much time has passed since the line before. A member's answers begin with its name.
Underscores in a reason are spaces, two of them are one.
"""

from __future__ import annotations

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.inputs import ClusterSeen, Context, Received, Resigned, SessionLost
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.views import GroupView
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.journal.formatting import format_event
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.records.consumer_offsets import Record, offsets_partition
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster, NodeActor
from rejoin.simulation.disk import Disk
from rejoin.simulation.network import Requester
from rejoin.simulation.world import Actor, Millis, Order, World
from rejoin.transcript.responses import show
from tests.transcript import requests as requests
from tests.transcript.requests import OUTSIDE, Client, options
from tests.transcript.words import show_group, show_record, show_timers

START = 1_700_000_000_000
BEAT_EVERY_MS = 3_000
NEVER = 1 << 60


class Asked(Requester):
    """A request on its way, as its token."""

    def __init__(self, player: Player, client: Client | None, request: Request, quiet: bool) -> None:
        self.player = player
        self.client = client
        self.request = request
        self.quiet = quiet
        self.answered = False

    def hear(self, response: Response) -> None:
        """The node answers."""
        assert not self.answered, "a request is answered once"
        self.answered = True
        self.player.answered(self, response)


class Player:
    """Runs commands in a world of one node whose log takes no time, and collects what comes out."""

    def __init__(self) -> None:
        self.world = World(0, START)
        self.world.listeners.append(self.hear)
        self.disk = Disk(self.world, None)
        self.disk.told_written.append(self.wrote)
        self.settings: dict[str, object] = {}
        self.party: NodeActor | None = None
        self.group = "g"
        self.clients: dict[str, Client] = {}
        self.parties: dict[str, Actor] = {}
        self.lines: list[str] = []
        self.silent = False
        self.shown_at = START
        self.tells_events = True
        self.unread: list[Record] = []
        self.ids = 0
        self.topics = 0
        self.makes_topic = False

    # --- driving

    def play(self, commands: list[str]) -> list[str]:
        """Run one block; returns the lines that came out of it."""
        self.lines = []
        for command in commands:
            self.run(command)
        return self.lines

    def run(self, command: str) -> None:
        words = command.split()
        plain = getattr(self, f"do_{words[0]}", None)
        if plain is not None:
            plain(words[1:])
            return
        verb = getattr(self, f"member_{words[1]}", None) if len(words) > 1 else None
        if verb is None:
            raise ValueError(f"cannot read the command {command!r}")
        verb(self.client(words[0]), words[2:])

    def client(self, name: str) -> Client:
        if name not in self.clients:
            self.clients[name] = Client(name)
            self.parties[name] = Actor(self.world, name)
        return self.clients[name]

    def start(self) -> NodeActor:
        """The node; it comes up when it is first needed."""
        if self.party is None:
            settings = Settings.model_validate(self.settings)
            self.cluster = Cluster(self.world, self.disk, 1, settings, notice_ms=0, gossip_ms=0)
            self.party = party = self.cluster.nodes[0]
            party.new_id = self._new_id
            party.start()
            partitions = [offsets_partition(index) for index in range(settings.offsets_topic_num_partitions)]
            party.step(ClusterSeen((party.broker,), dict.fromkeys(partitions, party.broker.node_id)))
            for partition in partitions:
                self.tells_events = bool(self.disk.log(partition).records)
                self.cluster.elect(partition, party)
            self.tells_events = True
        return self.party

    @property
    def core(self) -> Node:
        core = self.start().core
        assert core is not None, "a transcript's node is up"
        return core

    def _new_id(self) -> str:
        """Short ids for members, whole ones for topics."""
        if self.makes_topic:
            self.topics += 1
            return f"{self.topics:032x}"
        self.ids += 1
        return str(self.ids)

    def say(self, line: str) -> None:
        if self.silent:
            return
        now = self.world.now
        if now != self.shown_at:
            self.lines.append(f"+{now - self.shown_at}ms")
            self.shown_at = now
        self.lines.append(line)

    def hear(self, _: Actor, event: Event, now: Millis) -> None:
        """An event of the node."""
        if isinstance(event, CoreFailed):
            raise AssertionError(f"a bug: {event.doing}: {event.problem}")
        if self.tells_events:
            self.say(format_event(event))

    def wrote(self, append: Append) -> None:
        """Records have got into the log."""
        self.unread.extend(append.records)

    def ask(self, client: Client | None, asked: tuple[Request, int], *, quiet: bool = False) -> None:
        """Send a request; what is answered later is shown when it is."""
        request, version = asked
        request.check_version(version)
        token = Asked(self, client, request, quiet)
        name = client.name if client is not None else OUTSIDE
        self.start().step(Received(token, request, Context(version, name, "/127.0.0.1")))
        if not token.answered:
            self.say(f"{name}  {BY_REQUEST[type(request)].name} waits")

    def answered(self, asked: Asked, response: Response) -> None:
        client = asked.client
        if client is not None and isinstance(response, JoinGroupResponse):
            client.remember(response)
        text = f"{BY_REQUEST[type(asked.request)].name} -> {show(response)}"
        if asked.quiet and client is not None:
            if text == client.last_beat or (not client.last_beat and text.endswith("NONE")):
                return
            client.last_beat = text
        self.say(f"{client.name if client is not None else OUTSIDE}  {text}")

    def do_quietly(self, words: list[str]) -> None:
        before, self.silent = self.silent, True
        try:
            self.run(" ".join(words))
        finally:
            self.silent = before
        self.shown_at = self.world.now
        self.unread.clear()

    def do_completing(self, names: list[str]) -> None:
        for name in sorted(names, key=lambda name: not self.leads(name)):
            self.do_quietly([name, "joins"])
        while (group := self.view()) is not None and group.state == "PreparingRebalance":
            self.do_quietly(["advance", "to=join"])

    def do_stable(self, words: list[str]) -> None:
        shares = dict(word.split("=", 1) for word in words)
        self.do_completing(list(shares))
        for name in sorted(shares, key=self.leads):
            give = ["give", *words] if self.leads(name) else []
            self.do_quietly([name, "sync", *give])
        group = self.view()
        assert group is not None
        assert group.state == "Stable", f"the group is {group.state}"

    def leads(self, name: str) -> bool:
        group = self.view()
        return group is not None and group.leader == self.clients.get(name, Client(name)).member_id

    # --- looking

    def view(self) -> GroupView | None:
        return self.core.describe_group(self.group, self.world.now)

    def do_look(self, _: list[str]) -> None:
        self.say(show_group(self.group, self.view()))

    def do_timers(self, _: list[str]) -> None:
        self.say(show_timers(self.group, self.view(), self.world.now))

    def do_written(self, _: list[str]) -> None:
        for record in self.unread:
            self.say(show_record(record))
        if not self.unread:
            self.say("log  nothing")
        self.unread.clear()

    # --- time

    def do_advance(self, words: list[str]) -> None:
        core = self.core
        if words[0].startswith("to="):
            kind = words[0].removeprefix("to=").upper()
            due = [at for key, at in core._ctx.deadlines._due.items() if key[0].name == kind]
            if not due:
                raise ValueError(f"nothing is due of kind {kind}")
            self.world.run(min(due))
        else:
            self.world.run(self.world.now + int(words[0]))

    def do_pause(self, _: list[str]) -> None:
        self.start().paused_until = NEVER

    def do_resume(self, _: list[str]) -> None:
        self.start().go_on()

    def do_beating(self, words: list[str]) -> None:
        for name in words:
            client = self.client(name)
            client.last_beat = ""
            self._beat_later(client)

    def _beat_later(self, client: Client) -> None:
        client.next_beat = self.world.now + BEAT_EVERY_MS
        lane = self.parties[client.name].lane(Order.REQUEST)
        self.world.at(client.next_beat, lane, self._beat, (client, client.next_beat))

    def _beat(self, what: tuple[Client, Millis]) -> None:
        client, at = what
        if client.next_beat == at:
            self._beat_later(client)
            self.member_beat(client, [], quiet=True)

    def do_silence(self, words: list[str]) -> None:
        for name in words:
            self.client(name).next_beat = None

    # --- surroundings

    def do_restart(self, words: list[str]) -> None:
        self.start().crash()
        self.party = None
        self.disk.held_appends.clear()
        self.do_set(words)
        self.start()

    def do_set(self, words: list[str]) -> None:
        assert self.party is None, "settings come first"
        for name, value in (word.split("=", 1) for word in words):
            self.settings[name] = tuple(value.split(",")) if name == "emulator.deny" else value

    def do_group(self, words: list[str]) -> None:
        self.group = words[0] if words else ""

    def do_topic(self, words: list[str]) -> None:
        name, *rest = words
        if rest == ["gone"]:
            topics = (DeleteTopicState(name=name, topic_id="A" * 22),)
            self.ask(None, (DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6))
        elif rest[0] == "to":
            grown = CreatePartitionsTopic(name=name, count=int(rest[1]), assignments=None)
            self.ask(None, (CreatePartitionsRequest(topics=(grown,), timeout_ms=1000, validate_only=False), 3))
        else:
            topic = CreatableTopic(
                name=name, num_partitions=int(rest[0]), replication_factor=1, assignments=(), configs=()
            )
            before, self.silent, self.makes_topic = self.silent, True, True
            self.ask(None, (CreateTopicsRequest(topics=(topic,)), 7))
            self.silent, self.makes_topic = before, False

    def do_log(self, words: list[str]) -> None:
        mode, _, error = words[0].partition("=")
        self.disk.holds_appends = mode == "hold"
        self.disk.error = ErrorCode[error] if mode == "fail" else None

    def do_stored(self, words: list[str]) -> None:
        if self.disk.held_appends:
            self.disk.end_append(ErrorCode[words[0]] if words else None)
        else:
            self.say("log  nothing is held")

    def do_resign(self, words: list[str]) -> None:
        party = self.start()
        if words != ["writing"]:
            self.disk.held_appends.clear()
        self.disk.held_reads.clear()
        party.step(Resigned(self.partition))

    def do_elect(self, words: list[str]) -> None:
        party = self.start()
        self.disk.holds_reads = words == ["hold"]
        self.cluster.elect(self.partition, party)

    def do_expire(self, words: list[str]) -> None:
        """End a member's session now: a name, or ``id:`` and its member id."""
        (who,) = words
        member_id = who.removeprefix("id:") if who.startswith("id:") else self.client(who).member_id
        self.start().step(SessionLost(self.group, member_id))

    def do_load(self, words: list[str]) -> None:
        self.disk.holds_reads = False
        if self.disk.held_reads:
            self.disk.end_read()
        else:
            self.say("log  nothing is held")

    @property
    def partition(self) -> TopicPartition:
        return self.cluster.partition_of(self.group)

    # --- members

    def member_is(self, client: Client, words: list[str]) -> None:
        client.options |= options(words)

    def member_join(self, client: Client, words: list[str]) -> None:
        self.ask(client, requests.join(self.group, client, words))

    def member_joins(self, client: Client, words: list[str]) -> None:
        self.member_join(client, words)
        if client.member_id and client.generation == -1 and client.instance is None:
            self.member_join(client, [])

    def member_restarts(self, client: Client, words: list[str]) -> None:
        client.forget()
        self.member_join(client, words)

    def member_sync(self, client: Client, words: list[str]) -> None:
        self.ask(client, requests.sync(self.group, client, words, self.clients))

    def member_beat(self, client: Client, words: list[str], *, quiet: bool = False) -> None:
        self.ask(client, requests.beat(self.group, client, words), quiet=quiet)

    def member_leave(self, client: Client, words: list[str]) -> None:
        self.ask(client, requests.leave(self.group, client, words))

    def do_leave(self, words: list[str]) -> None:
        self.ask(None, requests.leave_together(self.group, words, self.clients))

    # --- offsets

    def member_commit(self, client: Client, words: list[str]) -> None:
        self.ask(client, requests.commit(self.group, client, words))

    def member_txn(self, client: Client, words: list[str]) -> None:
        self.ask(client, requests.txn_commit(self.group, client, words))

    def do_end(self, words: list[str]) -> None:
        self.ask(None, requests.end_transaction(int(words[0]), words[1] == "commit", self.partition.partition))

    def do_fetch(self, words: list[str]) -> None:
        self.ask(None, requests.fetch(self.group, words))

    def do_forget(self, words: list[str]) -> None:
        self.ask(None, requests.forget(self.group, words))

    # --- administration

    def do_list(self, words: list[str]) -> None:
        types = tuple(options(words).values())
        states = tuple(word for word in words if "=" not in word)
        self.ask(None, (ListGroupsRequest(states_filter=states, types_filter=types), 5))

    def do_describe(self, words: list[str]) -> None:
        groups = tuple(word for word in words if not word.startswith("v=")) or (self.group,)
        version = next((int(word[2:]) for word in words if word.startswith("v=")), 5)
        self.ask(None, (DescribeGroupsRequest(groups=groups, include_authorized_operations=False), version))

    def do_delete(self, words: list[str]) -> None:
        self.ask(None, (DeleteGroupsRequest(groups_names=tuple(words)), 2))

    def do_find(self, words: list[str]) -> None:
        given = options(words)
        keys = tuple(word for word in words if "=" not in word)
        version = int(given.get("v", "6"))
        key_type = int(given.get("type", "0"))
        if version >= 4:
            self.ask(None, (FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys), version))
        else:
            self.ask(None, (FindCoordinatorRequest(key_type=key_type, key=keys[0] if keys else ""), version))
