"""A group at one instant, in sentences: why it waits, for which member, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rejoin.journal.timeline_lines import short, span
from rejoin.simulation.kernel import Millis
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.output.timeline import clock

MOST_NAMED: Final = 3


def sentences(run: LaboratoryRun, group_id: str, state: dict[str, Any]) -> list[str]:
    """The sentences for a group, made from the state of an instant."""
    return list(_Speaker(run, group_id, state).speak())


class _Speaker:
    """One group in one instant."""

    def __init__(self, run: LaboratoryRun, group_id: str, state: dict[str, Any]) -> None:
        self.run = run
        self.group_id = group_id
        self.at: Millis = state["at"]
        self.processes = {name: each for name, each in state["processes"].items() if each["group"] == group_id}
        self.requests = state["requests"]
        self.led = state["groups"][group_id]["led"]

    def speak(self) -> Iterator[str]:
        if not self.led:
            yield f"No node leads {self.group_id}: its coordinator is down or unknown. Consumers keep what they have."
            return
        first = self.led[0]
        if len(self.led) > 1:
            others = ", ".join(each["node"] for each in self.led[1:])
            yield f"{first['node']} is the coordinator. {others} still believes it is: the log refuses what it writes."
        if self.run.troubles.of(first["node"], self.at):
            until = max(each.end for each in self.run.troubles.of(first["node"], self.at))
            yield f"{first['node']}, the coordinator, stands still until {clock(until)}: all requests to it wait."
        if first["isLoading"]:
            yield f"{first['node']} reads the log. Until it has, requests are answered COORDINATOR_LOAD_IN_PROGRESS."
            return
        group = first["group"]
        if group is None or group["state"] in ("Empty", "Dead"):
            yield self._empty(group)
        elif group["state"] == "PreparingRebalance":
            yield from self._preparing(group)
        elif group["state"] == "CompletingRebalance":
            yield from self._completing(group)
        else:
            yield from self._stable(group)
        yield from _few(list(self._zombies(group)))
        yield from self._unowned()

    def _zombies(self, group: dict[str, Any] | None) -> Iterator[str]:
        """Processes that the group has removed, and that go on because they do not know it."""
        known = {each["memberId"] for each in group["members"]} if group else set()
        for name, process in self.processes.items():
            member = process["member"]
            if member is None or not process["owned"] or member["member_id"] in known:
                continue
            trouble = self._trouble(name)
            if member["generation"] <= 0:
                yield (
                    f"{name} has left the group, and its application does not know{f': {trouble}' if trouble else ''}. "
                    f"Until it calls poll(), it takes {_partitions(process['owned'])} for its own."
                )
                continue
            yield (
                f"{name} is a member no more, and does not know{f': {trouble}' if trouble else ''}. It takes "
                f"{_partitions(process['owned'])} for its own until its next request is refused."
            )

    def _empty(self, group: dict[str, Any] | None) -> str:
        running = [name for name, each in self.processes.items() if each["isUp"]]
        if running:
            return f"{self.group_id} has no members. {_named(running)} {_is(running)} up and not in the group."
        return f"{self.group_id} has no members, and no consumer of it runs."

    # -- a rebalance

    def _preparing(self, group: dict[str, Any]) -> Iterator[str]:
        members = group["members"]
        waiting = [each for each in members if each["awaitingJoin"]]
        missing = [each for each in members if not each["awaitingJoin"]]
        ends = group["deadlines"].get("join")
        if group["generation"] == 0 and not missing:
            yield (
                f"The first rebalance of {self.group_id} is held open for more members "
                f"(group.initial.rebalance.delay.ms){_at(' until', ends)}. {_count(waiting, 'JoinGroup')} parked."
            )
            return
        yield (
            f"{self.group_id} rebalances: there is no new assignment until every member has sent JoinGroup. "
            f"{len(waiting)} of {len(members)} wait at this barrier."
        )
        for member in missing[:MOST_NAMED]:
            former = "the former member of " if self._is_former(member) else ""
            yield f"Missing is {former}{self._name(member)}: {self._why_missing(member)}."
        if len(missing) > MOST_NAMED:
            more = len(missing) - MOST_NAMED
            yield f"{more} more {'is' if more == 1 else 'are'} missing."
        over = [self._stops_waiting_for(each) for each in missing]
        known = [each for each in over if each is not None]
        if missing and len(known) == len(missing) and (ends is None or max(known)[0] < ends):
            last, why = max(known)
            yield f"That takes until {clock(last)}, {span(last - self.at)} more: then {why}."
        elif missing and ends is not None:
            longest = max((each["rebalanceTimeoutMs"] for each in members), default=0)
            yield (
                f"The coordinator waits until {clock(ends)} at the latest, {span(ends - self.at)} more (the longest "
                f"rebalance timeout, which is max.poll.interval.ms: {span(longest)}). Then it goes on without the "
                "missing."
            )

    def _stops_waiting_for(self, member: dict[str, Any]) -> tuple[Millis, str] | None:
        """When a member is not missing any more, as far as that is known by now, and what happens then."""
        name, expires = self._name(member), member["sessionExpiresAt"]
        whose = f"{'the former member of ' if self._is_former(member) else ''}{name}"
        removed = None if expires is None else (expires, f"the session of {whose} ends, and the coordinator removes it")
        if self._is_gone(member):
            return removed
        ends = {each.kind: each.end for each in self.run.troubles.of(member["clientId"], self.at)}
        silent = max((end for kind, end in ends.items() if kind in ("paused", "cut")), default=None)
        if silent is not None:
            return removed if removed is not None and expires < silent else (silent, f"{name} goes on, and joins")
        if "stuck" in ends:
            poll = self.processes[member["clientId"]]["member"]["poll_expires_at"]
            if poll is not None and poll < ends["stuck"]:
                return poll, f"max.poll.interval.ms of {name} ends, and it leaves by itself"
            return ends["stuck"], f"the handler of {name} returns, and it joins"
        known = self.processes[member["clientId"]]["member"]
        if known["state"] == "STABLE" and known["heartbeat_at"] is not None:
            return known["heartbeat_at"], f"{name} hears of it with its heartbeat, and joins with its next poll()"
        return None

    def _is_former(self, member: dict[str, Any]) -> bool:
        """Whether the process of a member runs, and is another member by now."""
        process = self.processes.get(member["clientId"])
        return process is not None and process["isUp"] and process["member"]["member_id"] != member["memberId"]

    def _is_gone(self, member: dict[str, Any]) -> bool:
        """Whether the process of a member is down, or is another member by now."""
        process = self.processes.get(member["clientId"])
        return process is None or not process["isUp"] or process["member"]["member_id"] != member["memberId"]

    def _why_missing(self, member: dict[str, Any]) -> str:
        process = self.processes.get(member["clientId"])
        expires = member["sessionExpiresAt"]
        session = f"; its session ends at {clock(expires)}" if expires is not None else ""
        if process is None or not process["isUp"]:
            return f"its process is down, and the coordinator does not know{session}"
        known = process["member"]
        if known["member_id"] != member["memberId"]:
            return f"its process was started again and is another member now. The old one is a ghost{session}"
        trouble = self._trouble(member["clientId"])
        if trouble:
            return trouble if "handler" in trouble else f"{trouble}{session}"
        if self._sends(member["clientId"], "JoinGroup"):
            return "its JoinGroup is in flight"
        if process["isClosing"]:
            return "it is closing"
        if known["state"] == "STABLE":
            if self._sends(member["clientId"], "Heartbeat"):
                return "it does not know of the rebalance yet: its heartbeat is in flight, and the response will say so"
            if known["heartbeat_at"] is not None:
                return (
                    f"it does not know of the rebalance yet: its next heartbeat is at {clock(known['heartbeat_at'])}, "
                    "and then it joins with its next poll()"
                )
            return "it does not know of the rebalance yet"
        return "it knows of the rebalance, and joins with its next poll()"

    def _completing(self, group: dict[str, Any]) -> Iterator[str]:
        leader = next((each for each in group["members"] if each["isLeader"]), None)
        waiting = [each for each in group["members"] if each["awaitingSync"]]
        ends = group["deadlines"].get("sync")
        yield (
            f"All have joined: this is generation {group['generation']}. The leader computes the assignment; "
            f"{len(waiting)} of {len(group['members'])} wait in SyncGroup for it."
        )
        if leader is None:
            return
        name = self._name(leader)
        if leader["awaitingSync"]:
            yield f"The assignment of {name} has come, and is being written to the log."
        elif self._sends(leader["clientId"], "SyncGroup"):
            yield f"The SyncGroup of the leader, {name}, is in flight."
        else:
            trouble = self._trouble(leader["clientId"]) or "it has the list of members and runs the assignor"
            yield f"The leader is {name}: {trouble}{_at('. The coordinator waits until', ends)}."

    # -- no rebalance

    def _stable(self, group: dict[str, Any]) -> Iterator[str]:
        count = _count(group["members"], "member")
        if "groupEpoch" in group:
            yield from self._consumer_group(group, count)
        else:
            yield f"{self.group_id} is Stable in generation {group['generation']}, {count}."
        yield from _few([text for text in map(self._unnoticed, group["members"]) if text])

    def _consumer_group(self, group: dict[str, Any], count: str) -> Iterator[str]:
        epoch = group["groupEpoch"]
        if reason := group.get("notReady"):
            yield f"{self.group_id} is not ready, {count}. {reason}"
            yield "No thread has a task until its topology can run on the topics that there are."
            return
        behind = [each for each in group["members"] if each["memberEpoch"] != epoch]
        if not behind and group["state"] == "Stable":
            yield f"{self.group_id} is Stable: {count}, and all have reached epoch {epoch}."
            return
        done = len(group["members"]) - len(behind)
        yield f"{self.group_id} moves to epoch {epoch}, member by member: {done} of {len(group['members'])} are there."
        members = group["members"]
        yield from _few([text for each in members if (text := self._reconciles(each, members))])

    def _reconciles(self, member: dict[str, Any], members: list[dict[str, Any]]) -> str:
        """Partitions that a member of a consumer group has yet to give up, or waits for."""
        name, pending = self._name(member), member["pendingRevocation"]
        others = [each for each in members if each is not member]
        if pending:
            return f"{name} has to give up {_partitions(pending)}{self._because(member)}."
        wanted = _without(member["target"], member["assignment"] or {})
        if not wanted or member["memberEpoch"] <= 0:
            return ""
        if any(_common(wanted, each["assignment"]) or _common(wanted, each["pendingRevocation"]) for each in others):
            return f"{name} waits for {_partitions(wanted)}, which others have not given up yet."
        process = self.processes.get(member["clientId"])
        at = process["member"]["heartbeat_at"] if process is not None and process["isUp"] else None
        return (
            f"{name} gets {_partitions(wanted)} with its next heartbeat{_at(', at', at)}: all of it has been given up."
        )

    def _because(self, member: dict[str, Any]) -> str:
        trouble = self._trouble(member["clientId"])
        return f", and does not: {trouble}" if trouble else ", and confirms it with its next heartbeat"

    def _unnoticed(self, member: dict[str, Any]) -> str:
        """Trouble of a member that the coordinator has not heard of."""
        name, process = self._name(member), self.processes.get(member["clientId"])
        expires = member["sessionExpiresAt"]
        until = f" until {clock(expires)}, when its session ends" if expires is not None else ""
        if process is None or not process["isUp"]:
            return f"{name} is down. The coordinator does not know: it keeps the member{until}."
        if process["member"]["member_id"] != member["memberId"]:
            return ""
        kinds = {each.kind: each.end for each in self.run.troubles.of(member["clientId"], self.at)}
        if "paused" in kinds:
            return f"{name} is paused until {clock(kinds['paused'])}, and sends nothing. The coordinator waits{until}."
        if "cut" in kinds:
            return f"{name} cannot reach the coordinator, which waits{until}."
        if "stuck" in kinds:
            expires = process["member"]["poll_expires_at"]
            leaves = f" At {clock(expires)} max.poll.interval.ms ends, and it leaves by itself." if expires else ""
            return (
                f"The handler of {name} hangs until {clock(kinds['stuck'])}. Its heartbeats go on, so the "
                f"coordinator considers it alive.{leaves}"
            )
        return ""

    def _unowned(self) -> Iterator[str]:
        topics = self.run.simulation.cluster.topics
        owned = {
            (topic, index)
            for each in self.processes.values()
            for topic, indexes in each["owned"].items()
            for index in indexes
        }
        all_ = [
            (name, index)
            for name in self.run.scenario.topics_of(self.group_id)
            if name in topics and not topics[name].is_gone
            for index, log in enumerate(topics[name].partitions)
            if log.started_at <= self.at
        ]
        free = sum(each not in owned for each in all_)
        if free and any(each["isUp"] for each in self.processes.values()):
            if free == len(all_):
                yield "No partition has an owner: nothing is read."
            else:
                yield f"{free} of {len(all_)} partitions {'have' if free > 1 else 'has'} no owner."

    # -- members

    def _trouble(self, client: str) -> str:
        process = self.processes.get(client)
        if process is not None and not process["isUp"]:
            return "its process is down"
        for each in self.run.troubles.of(client, self.at):
            until = "" if each.end > self.run.scenario.horizon else f" until {clock(each.end)}"
            if each.kind == "paused":
                return f"its process stands still{until}, as in a long garbage collection"
            if each.kind == "stuck":
                return f"its handler hangs{until}, so it does not call poll(), and only poll() joins"
            return "it cannot reach the coordinator"
        return ""

    def _sends(self, client: str, api: str) -> bool:
        return any(row[1] == client and row[3] == api for row in self.requests)

    @staticmethod
    def _name(member: dict[str, Any]) -> str:
        return str(member["clientId"] or short(member["memberId"]))


def _few(texts: list[str]) -> Iterator[str]:
    """The first sentences of a kind, and how many there are besides."""
    yield from texts[:MOST_NAMED]
    if len(texts) > MOST_NAMED:
        yield f"The same holds for {len(texts) - MOST_NAMED} more."


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _at(before: str, at: Millis | None) -> str:
    return "" if at is None else f"{before} {clock(at)}"


def _count(parts: list[Any], noun: str) -> str:
    return f"{len(parts)} {noun}{'' if len(parts) == 1 or noun[0].isupper() else 's'}"


def _partitions(topics: dict[str, list[int]]) -> str:
    names = [f"{topic}-{index}" for topic, indexes in topics.items() for index in indexes]
    return _named(names)


def _common(some: dict[str, list[int]], others: dict[str, list[int]] | None) -> bool:
    return any(set(indexes) & set((others or {}).get(topic, [])) for topic, indexes in some.items())


def _without(all_: dict[str, list[int]], part: dict[str, list[int]]) -> dict[str, list[int]]:
    left = {topic: [each for each in indexes if each not in part.get(topic, [])] for topic, indexes in all_.items()}
    return {topic: indexes for topic, indexes in left.items() if indexes}
