"""Which errors say that a request was wrong, and their lines in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.logs import LoggedReasons, client_name
from rejoin.coordinator.service.refusals.error_codes import Refusals
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.message import Request
from rejoin.protocol.printable import printable
from rejoin.protocol.registry import DELETE_RECORDS, DELETE_TOPICS, DESCRIBE_TOPIC_PARTITIONS, METADATA, Api
from rejoin.protocol.types import ZERO_UUID, Entity
from rejoin.protocol.wire.errors import ResponseTooLarge

REFUSALS: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_FETCH_SIZE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.TOPIC_DELETION_DISABLED,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.TELEMETRY_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.DUPLICATE_RESOURCE,
        ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_EXPIRED,
        ErrorCode.INVALID_PRINCIPAL_TYPE,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_VOTER_KEY,
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
        ErrorCode.STREAMS_TOPOLOGY_FENCED,
        ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
    }
)
"""Errors that mean that the request was wrong: a client gets rid of them neither by asking again nor by going on as the
protocol has it.

Kafka: those whose exceptions are not retriable, and of the others those that end only when the client changes: it sent
a damaged batch, or named a topic that does not exist. What ordinary life brings about is left out: rebalances, members
and producers that are fenced or have expired, something that exists already or no longer.
"""

_UNKNOWN_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_NOT_IN: Final[dict[int, frozenset[ErrorCode]]] = dict.fromkeys(
    (METADATA.key, DESCRIBE_TOPIC_PARTITIONS.key, DELETE_TOPICS.key), _UNKNOWN_TOPIC
)
"""APIs by which clients find out whether a topic exists, or make sure that it does not."""
_ALSO_IN: Final = {DELETE_RECORDS.key: frozenset({ErrorCode.OFFSET_OUT_OF_RANGE})}
"""A consumer goes on from another offset. A client that deletes records cannot."""

_LONGEST_NAME: Final = 200
_LONGEST_REASON: Final = 1_000
_LABELS: Final[dict[Entity | None, str]] = {
    Entity.TOPIC_NAME: "topic",
    Entity.PARTITION: "partition",
    Entity.GROUP_ID: "group_id",
    Entity.TRANSACTIONAL_ID: "transactional_id",
}
_LABELS_BY_NAME: Final = {
    "topic_id": "topic_id",
    "resource_name": "resource",
    "key": "key",
    "feature": "feature",
}
_UNNAMED: Final = ("", None, ZERO_UUID)


def refusals_of(api: Api) -> frozenset[ErrorCode]:
    """The errors that say that a request of this API was wrong."""
    return (REFUSALS - _NOT_IN.get(api.key, frozenset())) | _ALSO_IN.get(api.key, frozenset())


def log_refusals(
    log: Any,
    logged: LoggedReasons,
    api: Api,
    software: str,
    context: Context,
    request: Request,
    refusals: Refusals,
) -> None:
    """A line for each error, once for each client. ``software`` is empty where it is not known."""
    client_id, host = context.client_id, context.client_host.lstrip("/")
    client = software or host
    for error, structs in refusals.items():
        message = getattr(structs[-1], "error_message", None) or error.name
        text = logged.to_log(client_name(api.name, client, client_id), message, error.name, host)
        if text is not None:
            log.warning(
                "request_refused",
                client=_shown(client),
                client_id=_shown(client_id) or None,
                api=api.name,
                error=error.name,
                **_subject((request, *structs)),
                reason=None if text == error.name else _shown(text, _LONGEST_REASON),
            )


def log_too_large(
    log: Any, logged: LoggedReasons, api: Api, software: str, context: Context, problem: ResponseTooLarge
) -> None:
    """A line for a response that was too large, once for each client."""
    client_id, host = context.client_id, context.client_host.lstrip("/")
    client = software or host
    reason = f"{problem}; ask for less in one request"
    text = logged.to_log(client_name(api.name, client, client_id), reason, "", host)
    if text is not None:
        log.warning(
            "request_refused",
            client=_shown(client),
            client_id=_shown(client_id) or None,
            api=api.name,
            error=ErrorCode.UNKNOWN_SERVER_ERROR.name,
            reason=text,
        )


def _subject(structs: tuple[Any, ...]) -> Mapping[str, Any]:
    """The resource that these nested structs name: a topic and partition, a group or another one."""
    found: dict[str, Any] = {}
    for struct in structs:
        model: type = type(struct)
        for spec in fields_of(model):
            label = _label(spec)
            value = getattr(struct, spec.name)
            if label is not None and value not in _UNNAMED:
                found[label] = _shown(value) if isinstance(value, str) else value
    if "topic" in found:
        found.pop("topic_id", None)
    return found


def _label(spec: FieldSpec) -> str | None:
    """The name of a field in the log; none if the log leaves it out."""
    return None if spec.is_array else _LABELS.get(spec.entity) or _LABELS_BY_NAME.get(spec.name)


def _shown(text: str, longest: int = _LONGEST_NAME) -> str:
    return printable(text if len(text) <= longest else f"{text[:longest]}…")
