"""Requests about the cluster: who coordinates what, and which requests are understood.

Kafka: KafkaApis.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Broker, Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.repeated import computed_once
from rejoin.coordinator.core.runtime.shards import CLUSTER_ID
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.protocol.brokers.offered_versions import ADVERTISED_FROM, offered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from rejoin.protocol.messages.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    no_coordinator,
)
from rejoin.protocol.records.share_partitions import parse_coordinator_key
from rejoin.protocol.unvalidated import unvalidated

if TYPE_CHECKING:
    from rejoin.coordinator.core.share_state.coordinator import ShareCoordinator
    from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator

FIRST_API_VERSIONS_WITH_LEVEL_0: Final = 4
SHARE_KEY_TYPE: Final = 2
FIRST_LOOKUP_OF_SHARE_PARTITIONS: Final = 6
KEY_TYPES: Final = {0: Resource.GROUP, 1: Resource.TRANSACTIONAL_ID}
FIRST_BATCHED_LOOKUP: Final = 4
FIRST_API_VERSIONS_WITH_SOFTWARE: Final = 3
NO_NODE: Final = -1

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Kafka: ApiVersionsRequest.isValid."""


class ClusterRequests:
    """Handles requests about the cluster, such as FindCoordinator and ApiVersions."""

    def __init__(
        self,
        ctx: StepContext,
        shards: GroupShards,
        changes: TopicChanges,
        admission: Admission,
        transactions: Callable[[], TransactionCoordinator],
        share: Callable[[], ShareCoordinator],
    ) -> None:
        self._ctx = ctx
        self._shards = shards
        self._changes = changes
        self._admission = admission
        self._transactions = transactions
        self._share = share

    def find_coordinator(self, token: Token, request: FindCoordinatorRequest, context: Context) -> None:
        if _is_share(request, context) and self._admission.allows(FindCoordinatorRequest, context, Resource.CLUSTER):
            again = partial(self.find_coordinator, token, request, context)
            if not self._share().when_ready(next(iter(request.coordinator_keys), ""), again):
                return
        if KEY_TYPES.get(request.key_type) is Resource.TRANSACTIONAL_ID:
            again = partial(self.find_coordinator, token, request, context)
            if not self._transactions().when_ready(next(iter(request.coordinator_keys), request.key), again):
                return
        if context.api_version >= FIRST_BATCHED_LOOKUP:
            found = computed_once(request.coordinator_keys, lambda key: self._find(key, request, context))
            self._ctx.reply(token, FindCoordinatorResponse(coordinators=found))
            return
        one = self._find(request.key, request, context)
        self._ctx.reply(
            token,
            FindCoordinatorResponse(
                error_code=one.error_code,
                error_message=one.error_code.name,
                node_id=one.node_id,
                host=one.host,
                port=one.port,
            ),
        )

    def _find(self, key: str, request: FindCoordinatorRequest, context: Context) -> Coordinator:
        """The coordinator of one key. The key itself may be anything, even empty."""
        resource = KEY_TYPES.get(request.key_type)
        broker: Broker | ErrorCode
        if _is_share(request, context):
            broker = self._locate_share_partition(key, request, context)
        elif resource is None:
            # Kafka: the one error that has a text in v4 and later as well.
            refused = no_coordinator(key, ErrorCode.INVALID_REQUEST)
            return refused.model_copy(update={"error_message": refused.error_code.name})
        elif resource is Resource.GROUP:
            broker = self._admission.locate(self._shards, request, context, resource, key)
        else:
            broker = self._locate_transaction(key, request, context)
        if isinstance(broker, ErrorCode):
            return no_coordinator(key, broker)
        if resource is Resource.GROUP:
            # Differs: Kafka makes the topic only now, and answers COORDINATOR_NOT_AVAILABLE until it is there.
            self._changes.use_offsets_topic()
        endpoint = broker.endpoint(context)
        return unvalidated(
            Coordinator,
            key=key,
            node_id=broker.node_id,
            host=endpoint.host,
            port=endpoint.port,
            error_code=ErrorCode.NONE,
            error_message="",
        )

    def _locate_transaction(self, key: str, request: FindCoordinatorRequest, context: Context) -> Broker | ErrorCode:
        """The node that coordinates a transactional id, or why there is none to name."""
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, key)
        if error is not ErrorCode.NONE:
            return error
        return self._transactions().leader_of(key) or ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _locate_share_partition(
        self, key: str, request: FindCoordinatorRequest, context: Context
    ) -> Broker | ErrorCode:
        """The node that coordinates a share-partition, or why there is none to name."""
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is not ErrorCode.NONE:
            return error
        if parse_coordinator_key(key) is None:
            return ErrorCode.INVALID_REQUEST
        return self._share().leader_of(key) or ErrorCode.COORDINATOR_NOT_AVAILABLE

    def api_versions(self, token: Token, request: ApiVersionsRequest, context: Context) -> None:
        error = self._error_of(request, context)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        settings = self._ctx.settings
        versions = offered(settings.emulator_as_kafka, with_telemetry=settings.emulator_client_telemetry)
        keys = tuple(
            ApiVersion(api_key=key, min_version=ADVERTISED_FROM.get(key, first), max_version=last)
            for key, (first, last) in versions.items()
        )
        features = self._ctx.features
        supported = [
            SupportedFeatureKey(name=name, min_version=0, max_version=newest)
            for name, newest in features.supported.items()
        ]
        finalized = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name in features.supported
            if (level := features.level(name))
        ]
        response = ApiVersionsResponse(
            api_keys=keys,
            # Kafka: older clients cannot read a feature that begins with level 0 (KAFKA-17011).
            supported_features=tuple(supported) if context.api_version >= FIRST_API_VERSIONS_WITH_LEVEL_0 else (),
            finalized_features_epoch=self._changes.features_epoch,
            finalized_features=tuple(finalized),
        )
        self._ctx.reply(token, response)

    def _error_of(self, request: ApiVersionsRequest, context: Context) -> ErrorCode:
        """Why a client is not served that says who it is, and whom it takes this for."""
        # Kafka: ApiVersionsRequest.isValid, KafkaApis.clusterIdOrNodeIdIsInvalid.
        if (request.cluster_id is None) is not (request.node_id == NO_NODE):
            return ErrorCode.INVALID_REQUEST
        if context.api_version >= FIRST_API_VERSIONS_WITH_SOFTWARE and not (
            _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            return ErrorCode.INVALID_REQUEST
        here = (CLUSTER_ID, self._ctx.settings.broker_id)
        if request.cluster_id is not None and (request.cluster_id, request.node_id) != here:
            return ErrorCode.REBOOTSTRAP_REQUIRED
        return ErrorCode.NONE


def _is_share(request: FindCoordinatorRequest, context: Context) -> bool:
    """Whether a request looks for the coordinators of share-partitions."""
    return request.key_type == SHARE_KEY_TYPE and context.api_version >= FIRST_LOOKUP_OF_SHARE_PARTITIONS
