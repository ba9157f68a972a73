"""Plays sequences that Kafka's own group coordinator played with a share group, and shows them in the same form."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.persister import OnInitialized, OnStateDeleted
from rejoin.coordinator.core.inputs import Broker, ClusterSeen, Context, Elapsed
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from rejoin.protocol.messages.share.share_group_describe import ShareGroupDescribeRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.protocol.messages.share.share_group_offsets import (
    AlteredOffsetsRequestPartition,
    AlteredOffsetsRequestTopic,
    AlterShareGroupOffsetsRequest,
    DeletedOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
)
from rejoin.protocol.messages.share.share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from rejoin.protocol.records.keyed import KeyedRecord
from tests import paths
from tests.coordinator.core.driver import GROUP, PARTITION, commit, join
from tests.coordinator.core.groups.topics_driver import TopicsDriver

TRACES: Final = paths.GOLDEN / "share-groups" / "share-group.jsonl.gz"
CATEGORIES: Final = ("members", "topics", "interval", "admin", "errors", "mixed")


def traces(category: str) -> list[dict[str, Any]]:
    """The sequences of a category, in their order."""
    wanted = f'"category":"{category}"'.encode()
    with gzip.open(TRACES) as lines:
        return [orjson.loads(line) for line in lines if wanted in line]


class TracePersister:
    """Share coordinators that answer when a sequence says so."""

    def __init__(self) -> None:
        self.sent: list[InitializeShareGroupStateRequest] = []
        self.waiting: list[tuple[InitializeShareGroupStateRequest, OnInitialized]] = []
        self.deleted: list[DeleteShareGroupStateRequest] = []
        self.deletes = True

    def initialize(self, request: InitializeShareGroupStateRequest, on_answer: OnInitialized) -> None:
        self.sent.append(request)
        self.waiting.append((request, on_answer))

    def answer(self, error: ErrorCode) -> InitializeShareGroupStateRequest:
        """Answer the oldest request."""
        request, on_answer = self.waiting.pop(0)
        response = request.error_response(0, error)
        assert isinstance(response, InitializeShareGroupStateResponse)
        on_answer(response)
        return request

    def delete(self, request: DeleteShareGroupStateRequest, on_answer: OnStateDeleted) -> None:
        self.deleted.append(request)
        error = ErrorCode.NONE if self.deletes else ErrorCode.COORDINATOR_NOT_AVAILABLE
        response = request.error_response(0, error)
        assert isinstance(response, DeleteShareGroupStateResponse)
        on_answer(response)


class ShareTraceNode(TopicsDriver):
    """A node with one offsets partition, to which the steps of one sequence happen."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        settings = Settings.model_validate(
            {
                "offsets.topic.num.partitions": 1,
                **trace["settings"],
            }
        )
        self.ids = 0
        node = Node(settings, self._new_id)
        self.persister = TracePersister()
        node._groups.persister = self.persister
        super().__init__(node, trace["start"])
        self.records: list[KeyedRecord[Any, Any]] = []
        self.requests = 0
        self.altering: dict[int, dict[str, dict[str, int]]] = {}
        """Requests that wait for the share coordinators, and what each is answered then."""
        self.step(ClusterSeen((Broker(1, "localhost", 9095),), {PARTITION: 1}))
        self.change_topics(trace["topics"])
        self.elect(PARTITION)

    def _new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032x}"

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Append):
            self.records += effect.records
        super().carry_out(effect)

    def answer_to(self, number: int) -> Any:
        """The response to a request, or none yet."""
        return self.replies.pop(number, None)

    def ask(self, request: Request, version: int) -> Any:
        self.requests += 1
        self.request(self.requests, request, Context(version, "client"))
        return self.replies.pop(self.requests)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """As in a step of the node, whose effects are carried out behind it."""
        ctx = self.node._ctx
        ctx.now, ctx.effects = self.now, []
        yield
        effects, ctx.effects = ctx.effects, []
        for effect in effects:
            self.carry_out(effect)

    # --- steps

    def do(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """One step; returns what came of it."""
        self.records = []
        self.persister.sent, self.persister.deleted = [], []
        out: dict[str, Any] = getattr(self, f"do_{step['do']['op']}")(step["do"], step["out"])
        return out

    def do_heartbeat(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        topics = what["topics"]
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=what["member"],
            member_epoch=what["epoch"],
            rack_id=what["rack"],
            subscribed_topic_names=None if topics is None else tuple(topics),
        )
        answer = self.ask(request, 1)
        if answer.error_code is not ErrorCode.NONE:
            return {"error": answer.error_code}
        out = {
            "error": 0,
            "member_epoch": answer.member_epoch,
            "interval": answer.heartbeat_interval_ms,
            "assignment": None
            if answer.assignment is None
            else {self.names[each.topic_id]: [*each.partitions] for each in answer.assignment.topic_partitions},
        }
        return out | self.initializations()

    def initializations(self) -> dict[str, Any]:
        """Requests to the share coordinators in this step."""
        if not self.persister.sent:
            return {}
        (request,) = self.persister.sent
        return {
            "initialize": {
                self.shown(topic.topic_id): {
                    str(each.partition): [each.state_epoch, each.start_offset] for each in topic.partitions
                }
                for topic in request.topics
            }
        }

    def do_initialized(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        with self.inside():
            request = self.persister.answer(ErrorCode.NONE if what["result"] else ErrorCode.NOT_COORDINATOR)
        for number in [*self.altering]:
            answer = self.answer_to(number)
            if answer is not None:
                expected = self.altering.pop(number)
                assert answer.error_code is ErrorCode.NONE
                assert not what["result"] or self.partition_errors(answer) == expected
        partitions = {self.names[each.topic_id]: [p.partition for p in each.partitions] for each in request.topics}
        assert {name: sorted(each) for name, each in partitions.items()} == what["partitions"]
        return {}

    def do_sleep(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        before = self.timers()
        self.now += what["ms"]
        fired = sorted(name for name, left in before.items() if left <= what["ms"])
        self.step(Elapsed())
        return {"fired": fired} if fired else {}

    def do_topics(self, what: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Any]:
        ((name, topic),) = ((name, topic) for name, topic in what.items() if name != "op")
        known = self.topics.get(name)
        if topic is not None:
            topic = {**topic, "id": known["id"] if known is not None else out["id"]}
        self.change_topics({name: topic})
        return {"id": out["id"]} if "id" in out else {}

    def do_describe(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        (group,) = self.ask(
            ShareGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=False), 1
        ).groups
        return {
            "error": group.error_code,
            "state": group.group_state,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor": group.assignor_name,
            "members": [
                {
                    "member_id": each.member_id,
                    "rack_id": each.rack_id,
                    "member_epoch": each.member_epoch,
                    "client_id": each.client_id,
                    "client_host": each.client_host,
                    "topics": [*each.subscribed_topic_names],
                    "assignment": {topic.topic_name: [*topic.partitions] for topic in each.assignment.topic_partitions},
                }
                for each in group.members
            ],
        }

    def do_list(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        request = ListGroupsRequest(states_filter=tuple(what["states"]), types_filter=tuple(what["types"]))
        return {
            "groups": [
                {
                    "group_id": each.group_id,
                    "protocol_type": each.protocol_type,
                    "state": each.group_state,
                    "type": each.group_type,
                }
                for each in self.ask(request, 5).groups
            ]
        }

    def do_delete(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        (result,) = self.ask(DeleteGroupsRequest(groups_names=(GROUP,)), 2).results
        return {"state_to_delete": {}, **self.deletions(), "error": result.error_code}

    def deletions(self) -> dict[str, Any]:
        """Deletions that the share coordinators were asked for in this step."""
        return {
            "state_to_delete": {
                self.shown(topic.topic_id): [each.partition for each in topic.partitions]
                for request in self.persister.deleted
                for topic in request.topics
            }
        }

    def do_alter_offsets(self, what: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Any]:
        topics = tuple(
            AlteredOffsetsRequestTopic(
                topic_name=name,
                partitions=tuple(
                    AlteredOffsetsRequestPartition(partition_index=index, start_offset=offset)
                    for index, offset in partitions
                ),
            )
            for name, partitions in what["offsets"].items()
        )
        # The sequences answer before the share coordinators do, a node after them.
        self.requests += 1
        self.request(self.requests, AlterShareGroupOffsetsRequest(group_id=GROUP, topics=topics), Context(0, "client"))
        answer = self.answer_to(self.requests)
        if answer is None:
            self.altering[self.requests] = out["errors"]
            return {"error": 0, "errors": out["errors"], **self.initializations()}
        if answer.error_code is not ErrorCode.NONE:
            return {"error": answer.error_code}
        return {"error": 0, "errors": self.partition_errors(answer), "initialize": {}, **self.initializations()}

    def partition_errors(self, answer: Any) -> dict[str, dict[str, int]]:
        return {
            topic.topic_name: {str(each.partition_index): each.error_code for each in topic.partitions}
            for topic in answer.responses
        }

    def do_delete_offsets(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        self.persister.deletes = what["state_deleted"]
        topics = tuple(DeletedOffsetsRequestTopic(topic_name=name) for name in what["topics"])
        answer = self.ask(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics), 0)
        self.persister.deletes = True
        if answer.error_code is not ErrorCode.NONE:
            return {"error": answer.error_code}
        errors = {topic.topic_name: topic.error_code for topic in answer.responses}
        if not what["state_deleted"]:
            # The sequences leave out what a broker answers from the share coordinators' errors.
            errors = {name: error for name, error in errors.items() if error is not ErrorCode.COORDINATOR_NOT_AVAILABLE}
        return {"error": 0, "errors": errors, **(self.deletions() if self.persister.deleted else {})}

    def do_other(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        match what["api"]:
            case "JoinGroup":
                return {"error": self.ask(join(), 9).error_code}
            case "ConsumerGroupHeartbeat":
                request = ConsumerGroupHeartbeatRequest(
                    group_id=GROUP,
                    member_id="m",
                    member_epoch=0,
                    rebalance_timeout_ms=1_000,
                    subscribed_topic_names=("t1",),
                    topic_partitions=(),
                )
                return {"error": self.ask(request, 1).error_code}
            case "ConsumerGroupDescribe":
                asked = ConsumerGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=False)
                return {"error": self.ask(asked, 1).groups[0].error_code}
            case "DescribeGroups":
                described = self.ask(DescribeGroupsRequest(groups=(GROUP,)), 6).groups[0]
                return {"error": described.error_code, "state": described.group_state}
            case "OffsetFetch":
                fetch = OffsetFetchRequest(
                    groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),), require_stable=False
                )
                return {"error": self.ask(fetch, 8).groups[0].error_code}
            case "OffsetCommit":
                # A partition that does not exist is refused before the group is looked at.
                name = next(iter(self.topics), None)
                if name is None:
                    return {"error": ErrorCode.GROUP_ID_NOT_FOUND}
                topic = commit().topics[0].model_copy(update={"name": name})
                answer = self.ask(commit(topics=(topic,)), 9)
                return {"error": answer.topics[0].partitions[0].error_code}
        raise AssertionError(what)

    def do_reload(self, what: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        late, self.persister.waiting = self.persister.waiting, []
        self.resign(PARTITION)
        with self.inside():
            for request, on_answer in late:
                response = request.error_response(0, ErrorCode.NONE)
                assert isinstance(response, InitializeShareGroupStateResponse)
                on_answer(response)
        for number in self.altering:
            topics = self.answer_to(number).responses
            errors = [each.error_code for topic in topics for each in topic.partitions]
            assert ErrorCode.NONE not in errors
            assert ErrorCode.NOT_COORDINATOR in errors
        self.altering = {}
        self.elect(PARTITION)
        return {}

    # --- what there is

    def shown(self, topic_id: str) -> str:
        """A topic by its name, or by its id if it is gone."""
        name = self.names[topic_id]
        return name if self.topics.get(name, {}).get("id") == topic_id else topic_id

    def group_picture(self) -> dict[str, Any] | None:
        """The group, as the sequences have it."""
        group = self.shard().groups.get(GROUP)
        if group is None:
            return None
        assert isinstance(group, ShareGroup)
        return {
            "state": str(group.state),
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignment_timestamp": group.assignment_at,
            "metadata_hash": str(group.metadata_hash),
            "subscription_type": str(group.subscription_type).upper(),
            "members": [
                {
                    "member_id": each.member_id,
                    "rack_id": each.metadata.rack_id,
                    "client_id": each.metadata.client_id,
                    "member_epoch": each.current.epoch,
                    "previous_member_epoch": each.current.previous_epoch,
                    "topics": sorted(each.metadata.topic_names),
                    "assigned": self._named_if_any(each.current.assigned),
                    "target": self._named_if_any(group.targets[each.member_id])
                    if each.member_id in group.targets
                    else None,
                }
                for each in group.members.values()
            ],
            "state_partitions": self._states(group),
        }

    def _states(self, group: ShareGroup) -> dict[str, Any] | None:
        states = group.state_partitions
        if states is None:
            return None
        return {
            "initializing": self._named({each: state.partitions for each, state in states.initializing.items()}),
            "initialized": self._named({each: state.partitions for each, state in states.initialized.items()}),
            "deleting": [self.shown(each) for each in states.deleting],
        }

    def _named_if_any(self, partitions: Mapping[str, frozenset[int]]) -> dict[str, list[int]]:
        return {name: indexes for name, indexes in self._named(partitions).items() if indexes}

    def _named(self, partitions: Mapping[str, frozenset[int]]) -> dict[str, list[int]]:
        return {self.shown(topic_id): sorted(indexes) for topic_id, indexes in partitions.items()}

    def timers(self) -> dict[str, int]:
        """The timers of the group, by Kafka's names, with what is left of them."""
        return {
            f"session-timeout-g-{timer.member_id}": timer.at - self.now
            for timer in self.node.timers()
            if timer.timer == "member_session"
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
