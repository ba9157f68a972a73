"""Responses to ShareFetch and ShareAcknowledge. Kafka: ShareSessionContext, ShareFetchResponse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.share.fetch_under_way import Fetched, ShareFetchUnderWay
from rejoin.coordinator.core.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPartition, next_epoch
from rejoin.coordinator.core.share.settings import SharePartitionSettings
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.share.acknowledgements import NO_HINT, ShareLeader
from rejoin.protocol.messages.share.share_acknowledge import (
    AcknowledgedPartition,
    AcknowledgedTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from rejoin.protocol.messages.share.share_fetch import (
    ShareFetchablePartition,
    ShareFetchableTopic,
    ShareFetchResponse,
)
from rejoin.protocol.unvalidated import unvalidated

_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_NOTHING: Final = Fetched()


class ShareAnswers:
    """Makes the responses."""

    def __init__(self, ctx: StepContext, logs: ReadableLogs, group_configs: Mapping[str, Mapping[str, str]]) -> None:
        self._ctx = ctx
        self._logs = logs
        self._group_configs = group_configs

    def fail_fetch(self, token: Token, error: ErrorCode) -> None:
        """Refuse a ShareFetch."""
        self._ctx.reply(token, ShareFetchResponse(error_code=error))

    def fail_acknowledge(self, token: Token, error: ErrorCode) -> None:
        """Refuse a ShareAcknowledge."""
        self._ctx.reply(token, ShareAcknowledgeResponse(error_code=error))

    def answer_fetch(self, fetch: ShareFetchUnderWay) -> None:
        """Answer a ShareFetch that has read, and whose acknowledgements have their results."""
        if fetch.is_broken:
            self.fail_fetch(fetch.token, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        epoch = fetch.request.share_session_epoch
        if epoch not in (INITIAL_EPOCH, FINAL_EPOCH) and fetch.session.epoch != next_epoch(epoch):
            self.fail_fetch(fetch.token, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            return
        endpoints: dict[int, NodeEndpoint] = {}
        topics: dict[str, list[ShareFetchablePartition]] = {}
        for shared in _answered(fetch):
            result = fetch.fetched.get(shared, _NOTHING)
            acknowledged = fetch.acknowledged.get(shared, ErrorCode.NONE)
            hint = self._hint(shared, (result.error, acknowledged), fetch.context, endpoints)
            topics.setdefault(shared.topic_id, []).append(
                unvalidated(
                    ShareFetchablePartition,
                    partition_index=shared.partition,
                    error_code=result.error,
                    error_message=None,
                    acknowledge_error_code=acknowledged,
                    acknowledge_error_message=None,
                    current_leader=hint,
                    records=result.records,
                    acquired_records=result.acquired,
                )
            )
        self._ctx.reply(
            fetch.token,
            unvalidated(
                ShareFetchResponse,
                throttle_time_ms=0,
                error_code=ErrorCode.NONE,
                error_message=None,
                acquisition_lock_timeout_ms=self._lock_duration(fetch.group_id),
                responses=_by_topic(ShareFetchableTopic, topics),
                node_endpoints=tuple(endpoints.values()),
            ),
        )

    def answer_acknowledge(
        self,
        token: Token,
        request: ShareAcknowledgeRequest,
        context: Context,
        results: Mapping[SharedPartition, ErrorCode],
    ) -> None:
        """Answer a ShareAcknowledge whose partitions have their results."""
        endpoints: dict[int, NodeEndpoint] = {}
        topics: dict[str, list[AcknowledgedPartition]] = {}
        for shared, error in results.items():
            hint = self._hint(shared, (error,), context, endpoints)
            topics.setdefault(shared.topic_id, []).append(
                unvalidated(
                    AcknowledgedPartition,
                    partition_index=shared.partition,
                    error_code=error,
                    error_message=None,
                    current_leader=hint,
                )
            )
        self._ctx.reply(
            token,
            unvalidated(
                ShareAcknowledgeResponse,
                throttle_time_ms=0,
                error_code=ErrorCode.NONE,
                error_message=None,
                acquisition_lock_timeout_ms=self._lock_duration(request.group_id or ""),
                responses=_by_topic(AcknowledgedTopic, topics),
                node_endpoints=tuple(endpoints.values()),
            ),
        )

    def _lock_duration(self, group_id: str) -> int:
        ctx = self._ctx
        return SharePartitionSettings(group_id, ctx, self._group_configs, ctx.features).lock_duration_ms

    def _hint(
        self,
        shared: SharedPartition,
        errors: Iterable[ErrorCode],
        context: Context,
        endpoints: dict[int, NodeEndpoint],
    ) -> ShareLeader:
        """Where the leader of a partition is, for errors after which a client looks for it."""
        if not any(error in _ELSEWHERE for error in errors):
            return NO_HINT
        broker, epoch = self._logs.leader_of(self._logs.named(shared.topic_id) or "", shared.partition)
        if broker is None:
            return NO_HINT
        _, host, port = broker.endpoint(context)
        endpoints[broker.node_id] = NodeEndpoint(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        return ShareLeader(leader_id=broker.node_id, leader_epoch=epoch)


def _answered(fetch: ShareFetchUnderWay) -> list[SharedPartition]:
    """The partitions of a response, in order; those that gave records go to the end of the session."""
    session = fetch.session
    found = []
    for shared, result in list(fetch.fetched.items()):
        if fetch.request.share_session_epoch == INITIAL_EPOCH:
            found.append(shared)
            continue
        is_new = session.partitions.get(shared, False)
        if is_new:
            session.partitions[shared] = False
        if is_new or result.error is not ErrorCode.NONE or len(result.records) > 0:
            found.append(shared)
        if len(result.records) > 0:
            session.gave_records(shared)
    return found + [shared for shared in fetch.acknowledged if shared not in found]


def _by_topic(topic_type: Any, topics: Mapping[str, list[Any]]) -> tuple[Any, ...]:
    return tuple(
        [
            unvalidated(topic_type, topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ]
    )
