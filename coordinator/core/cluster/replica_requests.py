"""Requests about replicas: ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments, AlterReplicaLogDirs.

The controller decides on the first three. A node without one decides itself: its partitions have one replica each.

Kafka: KafkaApis, ControllerApis, ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from rejoin.coordinator.core.cluster.leaders import Leaders
from rejoin.coordinator.core.cluster.replica_changes import PartitionKey, ReplicaChanges
from rejoin.coordinator.core.inputs import Context, PartitionRegistration, Token
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.node_configs import LOG_DIR
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.replication.alter_replica_log_dirs import AlterReplicaLogDirsRequest, moved
from rejoin.protocol.messages.replication.elect_leaders import ElectLeadersRequest
from rejoin.protocol.messages.replication.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
)

ControllerRequest: TypeAlias = (
    ElectLeadersRequest | AlterPartitionReassignmentsRequest | ListPartitionReassignmentsRequest
)

DENIED: str = "Cluster authorization failed."
NOT_REACHED: str = "The controller could not be reached."


class ReplicaRequests:
    """Passes on to the controller what it decides, and answers the rest."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        leaders: Leaders,
        admission: Admission,
        peers: PeerRequests,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._leaders = leaders
        self._admission = admission
        self._peers = peers

    def decide(self, token: Token, request: ControllerRequest, context: Context) -> None:
        """Answer a request on which the controller decides."""
        version = context.api_version
        if not self._admission.allows(type(request), context, Resource.CLUSTER, CLUSTER_NAME):
            denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._ctx.reply(token, request.error_response(version, denied, DENIED))
        elif isinstance(request, AlterPartitionReassignmentsRequest) and not request.topics:
            # Kafka answers this itself, with an empty message.
            answer = request.error_response(version, ErrorCode.NONE, "")
            self._ctx.reply(token, answer)
        elif self._cluster.registrations is not None:
            self._peers.ask_controller(request, version, partial(self._decided, token, request, version))
        else:
            live = [broker.node_id for broker in self._cluster.brokers]
            self._ctx.reply(token, decided(ReplicaChanges(self._own_partitions(), live, live, fixed=True), request))

    def _decided(self, token: Token, request: ControllerRequest, version: int, response: Response | None) -> None:
        if response is None:
            response = request.error_response(version, ErrorCode.REQUEST_TIMED_OUT, NOT_REACHED)
        self._ctx.reply(token, response)

    def _own_partitions(self) -> dict[PartitionKey, PartitionRegistration]:
        return {
            (topic, index): PartitionRegistration(each.replicas, each.isr, each.node_id, each.leader_epoch)
            for topic in self._topics.listed()
            for index, each in enumerate(self._leaders.of(topic))
            if each.replicas
        }

    # --- directories

    def alter_replica_log_dirs(self, token: Token, request: AlterReplicaLogDirsRequest, context: Context) -> None:
        """Move replicas to the one directory that there is: they are there already."""
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        wanted = {
            (topic.name, index): each.path
            for each in request.dirs
            for topic in each.topics
            for index in topic.partitions
        }
        self._ctx.reply(token, moved({key: self._error_of(*key, path) for key, path in wanted.items()}))

    def _error_of(self, topic: str, index: int, path: str) -> ErrorCode:
        if path != LOG_DIR:
            return ErrorCode.LOG_DIR_NOT_FOUND
        leaders = self._leaders.of(topic) if topic in self._topics else []
        if not 0 <= index < len(leaders):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # Kafka: a replica of another broker is not led by this one; the older error stays for older tools.
        is_here = self._ctx.settings.broker_id in leaders[index].replicas
        return ErrorCode.NONE if is_here else ErrorCode.REPLICA_NOT_AVAILABLE


def decided(changes: ReplicaChanges, request: ControllerRequest) -> Response:
    """The decision on a request."""
    match request:
        case ElectLeadersRequest():
            return changes.elect_leaders(request)
        case AlterPartitionReassignmentsRequest():
            return changes.alter_reassignments(request)
        case ListPartitionReassignmentsRequest():
            return changes.list_reassignments(request)
