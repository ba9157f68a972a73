"""Elections and reassignments, decided on partitions and brokers as they are at one instant.

The decider of a cluster calls this: its controller, or a node that is alone. Nothing here asks or waits.

Kafka: ReplicationControlManager, PartitionChangeBuilder, PartitionReassignmentReplicas, PartitionReassignmentRevert.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import NO_LEADER, PartitionRegistration
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.replication.elect_leaders import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionElectionResult,
    ReplicaElectionResult,
)
from rejoin.protocol.messages.replication.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

PartitionKey: TypeAlias = tuple[str, int]
"""Topic name and partition index."""

_FIXED: Final = "nodes that share a store keep one replica of each partition, and leases decide where it is"


class _Refused(NamedTuple):
    error: ErrorCode
    message: str | None = None


_NOTHING_WRONG: Final = _Refused(ErrorCode.NONE)
_NOT_NEEDED: Final = _Refused(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
_NOT_PREFERRED: Final = _Refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
_NOT_ELIGIBLE: Final = _Refused(
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
)


class ReplicaChanges:
    """Answers requests; ``changed`` has the partitions that are others from then on.

    Where replicas are ``fixed``, no request moves them.
    """

    def __init__(
        self,
        partitions: Mapping[PartitionKey, PartitionRegistration],
        live: Collection[int],
        registered: Collection[int],
        *,
        fixed: bool = False,
    ) -> None:
        self._before = partitions
        self._topics = dict.fromkeys(topic for topic, _ in partitions)
        self._live = live
        self._registered = registered
        self._fixed = fixed
        self.changed: dict[PartitionKey, PartitionRegistration] = {}

    def _find(self, key: PartitionKey) -> PartitionRegistration | None:
        return self.changed.get(key) or self._before.get(key)

    # --- elections

    def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Elect leaders where other ones lead than the type of election wants."""
        if request.topic_partitions is not None and not request.topic_partitions:
            return ElectLeadersResponse()
        if request.election_type not in tuple(ElectionType):
            message = f"Unknown election type {request.election_type}"
            refused = request.error_response(2, ErrorCode.INVALID_REQUEST, message)
            assert isinstance(refused, ElectLeadersResponse), "a request makes its own response"
            return refused
        kind = ElectionType(request.election_type)
        if request.topic_partitions is None:
            found: dict[str, list[PartitionElectionResult]] = {topic: [] for topic in self._topics}
            for topic, index in list(self._before):
                result = self._elect(topic, index, kind)
                if result.error_code is not ErrorCode.ELECTION_NOT_NEEDED:
                    found[topic].append(result)
            wanted = list(found.items())
        else:
            wanted = [
                (each.topic, [self._elect(each.topic, index, kind) for index in each.partitions])
                for each in request.topic_partitions
            ]
        return ElectLeadersResponse(
            replica_election_results=tuple(
                ReplicaElectionResult(topic=topic, partition_result=tuple(results)) for topic, results in wanted
            )
        )

    def _elect(self, topic: str, index: int, kind: ElectionType) -> PartitionElectionResult:
        error, message = self._elect_one(topic, index, kind)
        return PartitionElectionResult(partition_id=index, error_code=error, error_message=message)

    def _elect_one(self, topic: str, index: int, kind: ElectionType) -> _Refused:
        if topic not in self._topics:
            return _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
        found = self._find((topic, index))
        if found is None:
            return _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
        preferred = found.replicas[0]
        if kind is ElectionType.PREFERRED:
            if found.leader == preferred:
                return _NOT_NEEDED
            if preferred not in found.isr or preferred not in self._live:
                return _NOT_PREFERRED
            self.changed[topic, index] = led_by(found, preferred)
            return _NOTHING_WRONG
        if found.leader != NO_LEADER:
            return _NOT_NEEDED
        leader = next((each for each in found.replicas if each in self._live), NO_LEADER)
        if leader == NO_LEADER:
            return _NOT_ELIGIBLE
        # Records that only the replicas in sync had are gone, where the new leader was not one of them.
        isr = found.isr if leader in found.isr else (leader,)
        self.changed[topic, index] = led_by(replace(found, isr=isr), leader)
        return _NOTHING_WRONG

    # --- reassignments

    def alter_reassignments(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        """Begin and cancel reassignments. One that needs no other replica ends at once."""
        responses = []
        for topic in request.topics:
            results = []
            for each in topic.partitions:
                error, message = self._reassign(
                    topic.name, each.partition_index, each.replicas, allows=request.allow_replication_factor_change
                )
                results.append(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error, error_message=message
                    )
                )
            responses.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(results)))
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change, responses=tuple(responses)
        )

    def _reassign(self, topic: str, index: int, target: tuple[int, ...] | None, *, allows: bool) -> _Refused:
        if topic not in self._topics:
            return _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}.")
        found = self._find((topic, index))
        if found is None:
            return _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}.")
        if target is None:
            return self._cancel((topic, index), found)
        refused = self._check(target)
        if refused is None and not allows:
            now = sum(1 for each in found.replicas if each not in found.adding)
            if len(target) != now:
                text = f"The replication factor is changed from {now} to {len(target)}"
                refused = _Refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        if refused is not None:
            return refused
        removing = tuple(sorted(each for each in found.replicas if each not in target))
        adding = tuple(sorted(each for each in target if each not in found.replicas or each in found.adding))
        if self._fixed and (adding or removing):
            return _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _FIXED)
        replicas = (*target, *removing)
        if replicas != found.replicas or adding or removing:
            wanted = replace(found, replicas=replicas, adding=adding, removing=removing)
            self.changed[topic, index] = completed(wanted, self._live)
        return _NOTHING_WRONG

    def _check(self, target: tuple[int, ...]) -> _Refused | None:
        """Find the problem with replicas that a request asks for. Kafka: validateManualPartitionAssignment."""
        begin = "The manual partition assignment includes"
        problem = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        if not target:
            return _Refused(problem, f"{begin} an empty replica list.")
        in_order = sorted(target)
        for at, broker in enumerate(in_order):
            if broker not in self._registered:
                return _Refused(problem, f"{begin} broker {broker}, but no such broker is registered.")
            if at and in_order[at - 1] == broker:
                return _Refused(problem, f"{begin} the broker {broker} more than once.")
        return None

    def _cancel(self, key: PartitionKey, found: PartitionRegistration) -> _Refused:
        if not found.adding and not found.removing:
            return _Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        isr = tuple(each for each in found.isr if each not in found.adding)
        if not isr:
            topic, index = key
            text = (
                f"Unable to revert partition assignment for {topic}:{index} because it would require an unclean "
                "leader election."
            )
            return _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        replicas = tuple(each for each in found.replicas if each not in found.adding)
        self.changed[key] = _with_replicas(found, replicas, isr, self._live)
        return _NOTHING_WRONG

    def list_reassignments(self, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        """List the partitions whose replicas come or go."""
        wanted = None
        if request.topics is not None:
            wanted = {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
        found: dict[str, list[OngoingPartitionReassignment]] = {}
        for key, registration in self._before.items():
            if (registration.adding or registration.removing) and (wanted is None or key in wanted):
                topic, index = key
                ongoing = OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=registration.replicas,
                    adding_replicas=registration.adding,
                    removing_replicas=registration.removing,
                )
                found.setdefault(topic, []).append(ongoing)
        return ListPartitionReassignmentsResponse(
            topics=tuple(
                OngoingTopicReassignment(name=topic, partitions=tuple(partitions))
                for topic, partitions in found.items()
            )
        )


def led_by(registration: PartitionRegistration, leader: int) -> PartitionRegistration:
    """The partition with a leader in a new leader epoch."""
    return replace(registration, leader=leader, leader_epoch=registration.leader_epoch + 1)


def completed(registration: PartitionRegistration, live: Collection[int]) -> PartitionRegistration:
    """The partition without its reassignment, if all replicas to be added are in sync; as it is otherwise."""
    if not registration.adding and not registration.removing:
        return registration
    isr = tuple(each for each in registration.isr if each not in registration.removing)
    if not isr or any(each not in isr for each in registration.adding):
        return registration
    replicas = tuple(each for each in registration.replicas if each not in registration.removing)
    return _with_replicas(registration, replicas, isr, live)


def _with_replicas(
    registration: PartitionRegistration, replicas: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]
) -> PartitionRegistration:
    """The partition with other replicas and no reassignment. A leader that is gone is replaced.

    Kafka: triggerLeaderEpochBumpForIsrShrinkIfNeeded. A replica that goes is fenced by a new leader epoch.
    """
    found = replace(registration, replicas=replicas, isr=isr, adding=(), removing=())
    leader = registration.leader
    if leader not in replicas:
        leader = next((each for each in replicas if each in isr and each in live), NO_LEADER)
    has_shrunk = any(each not in replicas for each in registration.replicas)
    return led_by(found, leader) if has_shrunk or leader != registration.leader else found
