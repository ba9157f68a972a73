"""Requests about the controllers: DescribeQuorum, and those that add and remove brokers, controllers and voters.

Every node is a voter of a quorum whose voters are those of its settings, as with ``controller.quorum.voters``: such a
quorum has ``kraft.version`` 0, and takes no changes of its voters.

Kafka: ControllerApis, KafkaRaftClient, AddVoterHandler, RemoveVoterHandler.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rejoin.coordinator.core.cluster.replica_requests import DENIED, NOT_REACHED
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import CLUSTER_ID, ClusterMetadata
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.replication.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumReplicaState,
    QuorumTopic,
)
from rejoin.protocol.messages.replication.quorum_changes import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    VoterListener,
)

METADATA_TOPIC: Final = "__cluster_metadata"
CONTROLLER_LISTENER: Final = "CONTROLLER"
LEADER_EPOCH: Final = 1
_NOT_HERE: Final = "This server does not host this topic-partition."
_WITHOUT_VOTERS: Final = "Cluster doesn't support {} voter because the kraft.version feature is 0"


class QuorumRequests:
    """Describes the quorum, and refuses to change it."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        changes: TopicChanges,
        admission: Admission,
        peers: PeerRequests,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._changes = changes
        self._admission = admission
        self._peers = peers

    def describe_quorum(self, token: Token, request: DescribeQuorumRequest, context: Context) -> None:
        if self._is_refused(token, request, context):
            return
        asked = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
        is_known = asked == [(METADATA_TOPIC, 0)]
        # Kafka: all partitions of a request have an error unless it names the one that there is, and nothing else.
        topics = tuple(self._known() if is_known else _unknown(topic) for topic in request.topics)
        nodes = tuple(self._nodes(context)) if is_known else ()
        self._ctx.reply(token, DescribeQuorumResponse(topics=topics, nodes=nodes))

    def _known(self) -> QuorumTopic:
        end_offset, now = self._changes.version, self._ctx.now
        voters = tuple(
            QuorumReplicaState(
                replica_id=broker.node_id,
                log_end_offset=end_offset,
                last_fetch_timestamp=now,
                last_caught_up_timestamp=now,
            )
            for broker in self._cluster.brokers
        )
        partition = QuorumPartition(
            partition_index=0,
            leader_id=min(each.replica_id for each in voters),
            leader_epoch=LEADER_EPOCH,
            high_watermark=end_offset,
            current_voters=voters,
        )
        return QuorumTopic(topic_name=METADATA_TOPIC, partitions=(partition,))

    def _nodes(self, context: Context) -> list[QuorumNode]:
        """The voters. Differs: each has one address for brokers, clients and controllers."""
        found = []
        for broker in self._cluster.brokers:
            _, host, port = broker.endpoint(context)
            listener = QuorumListener(name=CONTROLLER_LISTENER, host=host, port=port)
            found.append(QuorumNode(node_id=broker.node_id, listeners=(listener,)))
        return found

    # --- who is in the cluster

    def unregister_broker(self, token: Token, request: UnregisterBrokerRequest, context: Context) -> None:
        if self._is_refused(token, request, context):
            return
        version = context.api_version
        if self._cluster.registrations is not None:
            self._peers.ask_controller(request, version, partial(self._unregistered, token, request, version))
            return
        broker_id = request.broker_id
        if self._cluster.broker(broker_id) is None:
            text = f"Broker ID {broker_id} is not currently registered"
            self._answer(token, request, context, ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        else:
            # Differs: Kafka lets a broker that runs be unregistered, and serves its partitions no more until it is
            # started again.
            text = f"Broker ID {broker_id} runs: stop it before it is unregistered"
            self._answer(token, request, context, ErrorCode.INVALID_REQUEST, text)

    def _unregistered(
        self, token: Token, request: UnregisterBrokerRequest, version: int, response: Response | None
    ) -> None:
        if response is None:
            response = request.error_response(version, ErrorCode.REQUEST_TIMED_OUT, NOT_REACHED)
        self._ctx.reply(token, response)

    def unregister_controller(self, token: Token, request: UnregisterControllerRequest, context: Context) -> None:
        if self._is_refused(token, request, context):
            return
        controller_id = request.controller_id
        error = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        text = f"Controller ID {controller_id} is not currently registered."
        if self._cluster.broker(controller_id) is not None:
            error, text = ErrorCode.INVALID_REQUEST, f"Controller ID {controller_id} is a voter."
        self._answer(token, request, context, error, text)

    def add_raft_voter(self, token: Token, request: AddRaftVoterRequest, context: Context) -> None:
        if self._is_refused(token, request, context) or self._is_other_cluster(token, request, context):
            return
        error, text = ErrorCode.UNSUPPORTED_VERSION, _WITHOUT_VOTERS.format("adding")
        if request.voter_id < 0:
            error, text = ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
        elif all(each.name != CONTROLLER_LISTENER for each in request.listeners):
            endpoints = ", ".join(_shown(each) for each in request.listeners)
            error = ErrorCode.INVALID_REQUEST
            text = (
                f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{endpoints}}})) for the default "
                f"listener ListenerName({CONTROLLER_LISTENER})"
            )
        self._answer(token, request, context, error, text)

    def remove_raft_voter(self, token: Token, request: RemoveRaftVoterRequest, context: Context) -> None:
        if self._is_refused(token, request, context) or self._is_other_cluster(token, request, context):
            return
        error, text = ErrorCode.UNSUPPORTED_VERSION, _WITHOUT_VOTERS.format("removing")
        if request.voter_id < 0:
            error, text = ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
        self._answer(token, request, context, error, text)

    # --- answers

    def _is_refused(self, token: Token, request: Request, context: Context) -> bool:
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is ErrorCode.NONE:
            return False
        self._answer(token, request, context, error, DENIED)
        return True

    def _is_other_cluster(
        self, token: Token, request: AddRaftVoterRequest | RemoveRaftVoterRequest, context: Context
    ) -> bool:
        if request.cluster_id in {None, CLUSTER_ID}:
            return False
        text = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{CLUSTER_ID}"'
        self._answer(token, request, context, ErrorCode.INCONSISTENT_CLUSTER_ID, text)
        return True

    def _answer(self, token: Token, request: Request, context: Context, error: ErrorCode, text: str) -> None:
        answer = request.error_response(context.api_version, error)
        self._ctx.reply(token, answer.model_copy(update={"error_message": text}))


def _unknown(topic: DescribeQuorumTopic) -> QuorumTopic:
    return QuorumTopic(
        topic_name=topic.topic_name,
        partitions=tuple(
            QuorumPartition(
                partition_index=each.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=_NOT_HERE,
            )
            for each in topic.partitions
        ),
    )


def _shown(listener: VoterListener) -> str:
    return f"ListenerName({listener.name})={listener.host}/<unresolved>:{listener.port}"
