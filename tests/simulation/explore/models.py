"""Small models of groups, written from the protocol's description and not from the coordinator's code.

Each is a state that knows its steps by label. ``seen`` is what is compared: all but names and clocks.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

SESSION_MS = 10_000
REBALANCE_MS = 30_000
NEW_MEMBER_MS = 300_000

Seen: TypeAlias = tuple[object, ...]


class Model:
    """A state of a model."""

    @abstractmethod
    def steps(self) -> list[str]:
        """The labels of the steps that could come next."""

    @abstractmethod
    def take(self, label: str) -> None:
        """Take a step."""

    @abstractmethod
    def seen(self) -> Seen:
        """The part that an observer can compare."""

    @abstractmethod
    def key(self) -> object:
        """Equal for states that go on alike."""

    def after(self, label: str) -> Self:
        """The state after a step."""
        made = copy.deepcopy(self)
        made.take(label)
        return made


@dataclass
class Member:
    """A member of a classic group."""

    client: int
    expires: int | None
    parked: str = "join"
    is_new: bool = True


@dataclass
class Known:
    """A client's knowledge."""

    id: int = 0
    generation: int = -1
    leads: bool = False


@dataclass
class ClassicGroup(Model):
    """A classic group of dynamic members without a delay of the first rebalance."""

    letters: tuple[str, ...]
    now: int = 0
    ids: int = 0
    state: str = "Empty"
    is_first: bool = False
    generation: int = 0
    leader: int = 0
    members: dict[int, Member] = field(default_factory=dict)
    pending: dict[int, int] = field(default_factory=dict)
    unsynced: set[int] = field(default_factory=set)
    join_at: int | None = None
    sync_at: int | None = None
    clients: list[Known] = field(default_factory=lambda: [Known(), Known()])

    def steps(self) -> list[str]:
        found = [
            f"free-{number}: {letter}"
            for number, client in enumerate(self.clients)
            for letter in self.letters
            if letter == "join" or (client.leads if letter == "sync as leader" else client.id)
        ]
        return found + (["time"] if self._due() else [])

    def _due(self) -> list[int]:
        timers = [*(each.expires for each in self.members.values()), *self.pending.values(), self.join_at, self.sync_at]
        return [at for at in timers if at is not None]

    def take(self, label: str) -> None:
        if label == "time":
            self._time()
            return
        who, letter = label.split(": ")
        number = int(who[-1])
        client = self.clients[number]
        member = self.members.get(client.id)
        match letter:
            case "join":
                self.ids += 1
                client.id = self.ids
                self.pending[client.id] = self.now + SESSION_MS
            case "join own" if client.id in self.pending:
                del self.pending[client.id]
                self.members[client.id] = Member(number, self.now + NEW_MEMBER_MS)
                self.leader = self.leader or client.id
                self._rebalance_or_finish()
            case "join own" if member is not None:
                if self.state == "Completing" or (self.state == "Stable" and client.id != self.leader):
                    self._answer_join(client.id)
                else:
                    member.parked = "join"
                    self._rebalance_or_finish()
            case "sync" | "sync as leader" if member is not None and client.generation == self.generation:
                self._sync(client.id, member, assigns=letter == "sync as leader" or client.id == self.leader)
            case "heartbeat" if member is not None and client.generation == self.generation:
                member.expires = self.now + SESSION_MS
            case "leave" if client.id in self.pending:
                del self.pending[client.id]
                self._after_leaving()
            case "leave" if member is not None:
                self._remove(client.id)
                self._after_leaving()

    def _after_leaving(self) -> None:
        if self.state in ("Completing", "Stable"):
            self._prepare()
        elif self.state == "Preparing" and not self.is_first:
            self._finish_if_all_joined()

    def _rebalance_or_finish(self) -> None:
        if self.state == "Preparing":
            if not self.is_first:
                self._finish_if_all_joined()
        else:
            self._prepare()

    def _prepare(self) -> None:
        for member in self.members.values():
            if self.state == "Completing" and member.parked == "sync":
                member.parked, member.expires = "", self.now + SESSION_MS
        self.unsynced, self.sync_at = set(), None
        self.is_first, self.state = self.state == "Empty", "Preparing"
        self.join_at = self.now if self.is_first else self.now + (REBALANCE_MS if self.members else 0)
        if not self.is_first:
            self._finish_if_all_joined()

    def _finish_if_all_joined(self) -> None:
        if not self.pending and all(each.parked == "join" for each in self.members.values()):
            self._finish()

    def _finish(self) -> None:
        self.join_at = None
        for member_id in [each for each, member in self.members.items() if member.parked != "join"]:
            self._remove(member_id)
        self.generation += 1
        self.state = "Completing" if self.members else "Empty"
        for member_id, member in self.members.items():
            self._answer_join(member_id)
            member.parked, member.is_new, member.expires = "", False, self.now + SESSION_MS
        self.unsynced = set(self.members)
        self.sync_at = self.now + REBALANCE_MS if self.members else None

    def _answer_join(self, member_id: int) -> None:
        client = self.clients[self.members[member_id].client]
        client.id, client.generation, client.leads = member_id, self.generation, member_id == self.leader

    def _sync(self, member_id: int, member: Member, *, assigns: bool) -> None:
        if self.state not in ("Completing", "Stable"):
            return
        self.unsynced.discard(member_id)
        if self.state == "Completing":
            member.parked = "sync"
            if assigns and member_id == self.leader:
                self.state = "Stable"
                for each in self.members.values():
                    if each.parked == "sync":
                        each.parked, each.expires = "", self.now + SESSION_MS
        if not self.unsynced:
            self.sync_at = None

    def _remove(self, member_id: int) -> None:
        del self.members[member_id]
        self.unsynced.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.members), 0)

    def _time(self) -> None:
        self.now = min(self._due())
        for member_id in [each for each, at in self.pending.items() if at == self.now]:
            del self.pending[member_id]
            if self.state == "Preparing":
                self._finish_if_all_joined()
        for member_id in [each for each, member in self.members.items() if member.expires == self.now]:
            self._expire(member_id)
        if self.join_at == self.now:
            self._finish()
        if self.sync_at == self.now:
            for member_id in list(self.unsynced):
                self._remove(member_id)
            self._prepare()

    def _expire(self, member_id: int) -> None:
        member = self.members.get(member_id)
        if member is None or member.expires != self.now:
            return
        member.expires = None
        if member.is_new or not member.parked:
            self._remove(member_id)
            if self.state in ("Completing", "Stable"):
                self._prepare()
            elif self.state == "Preparing":
                self._finish_if_all_joined()

    def seen(self) -> Seen:
        members = sorted((member.client, member.parked) for member in self.members.values())
        clients = [
            ("member" if each.id in self.members else "pending" if each.id in self.pending else "none")
            for each in self.clients
        ]
        known = [(each.generation, each.leads) for each in self.clients]
        return self.state, self.generation, *members, len(self.pending), *clients, *known

    def key(self) -> object:
        shifted = [replace(each, expires=each.expires and each.expires - self.now) for each in self.members.values()]
        timers = [at and at - self.now for at in (self.join_at, self.sync_at)]
        order = [*self.members, *self.pending]
        ids = [order.index(each.id) if each.id in order else -1 - bool(each.id) for each in self.clients]
        known = [(each.generation, each.leads) for each in self.clients]
        unsynced = sorted(order.index(each) for each in self.unsynced)
        pending = [at - self.now for at in self.pending.values()]
        leader = order.index(self.leader) if self.leader in order else -1
        return repr((self.seen(), self.is_first, shifted, timers, ids, known, unsynced, pending, leader))


@dataclass
class Offsets(Model):
    """A group without members, in which both clients commit one partition's offset and fetch it."""

    generation: int = -1
    committed: int | None = None

    def steps(self) -> list[str]:
        return [f"free-{number}: {letter}" for number in (0, 1) for letter in ("commit from outside", "fetch")]

    def take(self, label: str) -> None:
        if label.endswith("outside"):
            self.committed = int(label[5])

    def seen(self) -> Seen:
        return (self.committed,)

    def key(self) -> object:
        return self.committed


@dataclass
class ConsumerGroup(Model):
    """A consumer group whose members join and leave. Their sessions begin at one instant, and end together."""

    epoch: int = 0
    members: dict[int, int] = field(default_factory=dict)
    """By client: the epoch of its member."""
    exists: bool = False

    def steps(self) -> list[str]:
        letters = ("beat 0", "beat -1")
        found = [f"free-{number}: {letter}" for number in (0, 1) for letter in letters]
        return found + (["time"] if self.members else [])

    def take(self, label: str) -> None:
        if label == "time":
            self.epoch += len(self.members)
            self.members.clear()
            return
        number = int(label[5])
        if label.endswith("beat 0"):
            if number not in self.members:
                # The first epoch of a group is 2: one is used up by its making.
                self.epoch = self.epoch + 1 if self.exists else 2
                self.exists = True
            self.members[number] = self.epoch
        elif number in self.members:
            del self.members[number]
            self.epoch += 1

    def seen(self) -> Seen:
        return self.epoch, *sorted(self.members.items())

    def key(self) -> object:
        return self.seen()
