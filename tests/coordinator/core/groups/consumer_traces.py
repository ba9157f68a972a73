"""Plays sequences that Kafka's own group coordinator played, and shows what comes of them in the same form."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect, ResolveRegexes
from rejoin.coordinator.core.groups.consumer.members.target import preferred_assignor
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.consumer.regex_resolution import matching
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elapsed,
    RegexesResolved,
    Token,
)
from rejoin.coordinator.core.node import Node
from rejoin.protocol.message import Response
from rejoin.protocol.records.keyed import KeyedRecord, TransactionMarker
from rejoin.protocol.registry import BY_NAME
from tests import paths
from tests.coordinator.core.driver import GROUP, PARTITION, uuid_in
from tests.coordinator.core.groups.topics_driver import TopicsDriver

TRACES: Final = paths.GOLDEN / "consumer-groups.jsonl.gz"
CATEGORIES: Final = ("dynamic", "static", "offsets", "regex", "interval", "mixed", "migration")
NEVER: Final = 10**12

TIMERS: Final = {
    "member_session": "session-timeout-g-{}",
    "rebalance": "rebalance-timeout-g-{}",
    "member_join": "join-g-{}",
    "member_sync": "sync-g-{}",
    "session": "heartbeat-g-{}",
    "join": "join-g",
    "sync": "sync-g",
    "initial_rebalance": "initial-rebalance-timeout-g",
}
"""What Kafka calls the timers of groups."""


def traces(*categories: str) -> list[dict[str, Any]]:
    """The sequences of some categories, in their order."""
    wanted = [f'"category":{json.dumps(each)}'.encode() for each in categories]
    with gzip.open(TRACES) as lines:
        # To read all of them takes a second; those of other categories are passed over as text.
        return [orjson.loads(line) for line in lines if not wanted or any(each in line for each in wanted)]


class TraceNode(TopicsDriver):
    """A node with one offsets partition, to which the steps of one sequence happen."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        settings = Settings.model_validate(
            {
                **trace["settings"],
                "offsets.topic.num.partitions": 1,
                "group.coordinator.rebalance.protocols": "classic,consumer,streams",
                "offsets.retention.check.interval.ms": NEVER,
                "group.min.session.timeout.ms": 0,
                "emulator.member.order": "hashmap",
                "transaction.partition.verification.enable": False,
                "group.consumer.regex.refresh.interval.ms": trace["settings"][
                    "group.consumer.regex.refresh.interval.ms"
                ],
            }
        )
        self._settings = settings
        self.new_ids: list[str] = []
        super().__init__(Node(settings, self._new_id), trace["start"])
        self.out: list[dict[str, Any]] = []
        self.records: list[KeyedRecord[Any, Any]] = []
        self.background: list[ResolveRegexes] = []
        self._known_ids: set[str] = set()
        self.step(ClusterSeen((Broker(1, "localhost", 9095),), {PARTITION: 1}))
        self.change_topics(trace["topics"])
        self.elect(PARTITION)

    def _new_id(self) -> str:
        return self.new_ids.pop(0)

    # --- what the node wants done

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Append):
            self.records += effect.records
        super().carry_out(effect)

    def resolve(self, effect: ResolveRegexes) -> None:
        self.background.append(effect)

    def on_reply(self, token: Token, response: Response) -> None:
        number, api, version = cast(tuple[int, str, int], token)
        body = orjson.loads(response.to_json(max(version, 7) if api == "JoinGroup" else version))
        self.out.append({"kind": "reply", "request": number, "api": api, "body": body})

    # --- steps

    def do(self, step: Mapping[str, Any]) -> None:
        """One step: time goes on, timers fire, then it happens."""
        self.out, self.records = [], []
        what = step["do"]
        self.new_ids = self._ids_made_up_in(step)
        self.now += what.get("after", 0)
        self.step(Elapsed())
        getattr(self, f"do_{what['op']}")(what)

    def _ids_made_up_in(self, step: Mapping[str, Any]) -> list[str]:
        """The id that this step's new member gets, as a node asks for it: without what it puts in front of it."""
        body = step["do"].get("body") or {}
        made_up = step.get("new_member_id")
        if step["do"].get("api") == "JoinGroup" and not body["memberId"]:
            instance_id = body.get("groupInstanceId")
            prefix = f"{'client' if instance_id is None else instance_id}-"
            members = (step["group"] or {}).get("members", ())
            # A reply to another member, which lost its place to this one, may be all that the step itself names.
            new = [each["member_id"] for each in members if each["member_id"] not in self._known_ids]
            made_up = new[0] if new else made_up
            made_up = made_up and made_up.removeprefix(prefix)
        self._known_ids |= {each["member_id"] for each in (step["group"] or {}).get("members", ())}
        return [] if made_up is None else [uuid_in(made_up)]

    def do_sleep(self, what: Mapping[str, Any]) -> None:
        """Only time goes on."""

    def do_request(self, what: Mapping[str, Any]) -> None:
        api = BY_NAME[what["api"]]
        body = what["body"]
        if what["api"] == "OffsetFetch":
            # The sequences read the newest state, as a broker does for a stable fetch, whatever the request says.
            body = {**body, "requireStable": True}
        request = api.request.from_json(json.dumps(body))
        self.request((what["request"], what["api"], what["version"]), request, Context(what["version"], "client"))

    def do_topics(self, what: Mapping[str, Any]) -> None:
        self.change_topics(what["topics"])

    def do_background(self, what: Mapping[str, Any]) -> None:
        task = self.background.pop(0)
        # Differs: the sequences find the topics of the time when the task runs, a node those of the time when it asks.
        found = {regex: matching(regex, self.topics) for regex in task.regexes}
        version = self.node._topics.version
        self.step(RegexesResolved(task.partition, task.epoch, task.group_id, found, version))

    def do_expire(self, what: Mapping[str, Any]) -> None:
        self.node._ctx.effects = []
        self.shard()._expire_all()
        effects, self.node._ctx.effects = self.node._ctx.effects, []
        for effect in effects:
            self.carry_out(effect)

    def do_end_transaction(self, what: Mapping[str, Any]) -> None:
        marker = TransactionMarker(producer_id=what["producer_id"], producer_epoch=0, committed=what["committed"])
        self.logs.of(PARTITION).records.append(marker)
        self.shard().producers.replay(marker)
        self.shard().end_transaction(marker)

    def do_reload(self, what: Mapping[str, Any]) -> None:
        self.resign(PARTITION)
        self.background = []
        self.elect(PARTITION)

    # --- what there is

    def group_picture(self) -> dict[str, Any] | None:
        """The group, as the sequences have it."""
        group = self.shard().groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            return self._consumer(group)
        return self._classic()

    def _consumer(self, group: ConsumerGroup) -> dict[str, Any]:
        subscriptions = group.subscriptions
        return {
            "type": "consumer",
            "state": str(group.state),
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignment_timestamp": group.assignment_at,
            "metadata_hash": str(group.metadata_hash),
            "subscription_type": str(group.subscription_type),
            "assignor": preferred_assignor(subscriptions.server_assignors),
            "subscribed_topics": {topic: list(count) for topic, count in subscriptions.topics.items()},
            "resolved_regexes": {regex: sorted(found.topics) for regex, found in subscriptions.resolved.items()},
            "refresh_deadline": group.refresh.at,
            "members": [self._member(group, member) for _, member in sorted(group.members.items())],
        }

    def _member(self, group: ConsumerGroup, member: ConsumerMember) -> dict[str, Any]:
        metadata, current = member.metadata, member.current
        target = group.targets.get(member.member_id)
        return {
            "member_id": member.member_id,
            "instance_id": metadata.instance_id,
            "rack_id": metadata.rack_id,
            "state": current.state.name,
            "member_epoch": current.epoch,
            "previous_member_epoch": current.previous_epoch,
            "rebalance_timeout_ms": metadata.rebalance_timeout_ms,
            "subscribed_topic_names": sorted(metadata.topic_names),
            "subscribed_topic_regex": metadata.topic_regex,
            "server_assignor": metadata.server_assignor,
            "assigned": self._held(current.assigned),
            "pending_revocation": self._held(current.pending),
            "target": None
            if target is None
            else {self.names[topic_id]: sorted(partitions) for topic_id, partitions in target.items()},
            "classic": None
            if metadata.classic is None
            else {
                "session_timeout_ms": metadata.classic.session_timeout_ms,
                "protocols": [protocol.name for protocol in metadata.classic.protocols],
            },
        }

    def _held(self, held: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
        return {
            self.names[topic_id]: {str(partition): epoch for partition, epoch in sorted(epochs.items())}
            for topic_id, epochs in held.items()
        }

    def _classic(self) -> dict[str, Any] | None:
        group, snapshot = self.node.describe_group(GROUP), self.node.group(GROUP)
        if group is None or snapshot is None:
            return None
        return {
            "type": "classic",
            "state": group.state,
            "previous_state": group.previous_state,
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol_name": group.protocol,
            "leader": group.leader,
            "subscribed_topics": group.subscribed_topics,
            "pending_join": len(group.pending_members),
            "pending_sync": sorted(group.pending_sync),
            "members": [
                {
                    "member_id": member.member_id,
                    "group_instance_id": member.group_instance_id,
                    "session_timeout": member.session_timeout_ms,
                    "rebalance_timeout": member.rebalance_timeout_ms,
                    "is_new": member.is_new,
                    "awaiting_join": member.awaiting_join,
                    "awaiting_sync": member.awaiting_sync,
                    "assignment": base64.b64encode(snapshot.members[member.member_id].assignment).decode(),
                    "protocols": member.protocols,
                }
                for member in sorted(group.members, key=lambda member: member.member_id)
            ],
        }

    def timers(self) -> dict[str, int]:
        """The timers of the group, by Kafka's names, with what is left of them."""
        return {
            TIMERS[timer.timer].format(timer.member_id): timer.at - self.now
            for timer in self.node.timers()
            if timer.timer in TIMERS
        }

    def written(self) -> list[dict[str, Any]]:
        """The records of this step, in the sequences' form."""
        return [
            {
                "type": record.key.version,
                "key": orjson.loads(record.key.data.to_json(record.key.version)),
                "value": record.value and orjson.loads(record.value.data.to_json(record.value.version)),
            }
            for record in self.records
        ]
