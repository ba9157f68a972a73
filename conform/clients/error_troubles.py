"""Troubles of one request each: the errors that a client must survive one after the other, and those that end it."""

from __future__ import annotations

from functools import partial
from typing import Final

from rejoin.conform.clients import acts, checks
from rejoin.conform.clients.checks import Check, of_classic, of_consumer_protocol
from rejoin.conform.clients.trouble import ClientTrouble
from rejoin.protocol.errors import ErrorCode as E

SURVIVED: Final = {
    "FindCoordinator": (
        E.COORDINATOR_NOT_AVAILABLE,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.NOT_COORDINATOR,
        E.REQUEST_TIMED_OUT,
    ),
    "JoinGroup": (
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.REBALANCE_IN_PROGRESS,
        E.UNKNOWN_MEMBER_ID,
    ),
    "SyncGroup": (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS),
    "OffsetFetch": (E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE),
    "Heartbeat": (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS),
    "ConsumerGroupHeartbeat": (
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.UNKNOWN_MEMBER_ID,
        E.FENCED_MEMBER_EPOCH,
    ),
    "OffsetCommit": (
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.REQUEST_TIMED_OUT,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
}
"""Errors by request: each ends one attempt, and the next one may succeed.

UNKNOWN_MEMBER_ID of a heartbeat or commit comes with a removal, in troubles of its own.
"""

FINAL: Final = {
    "FindCoordinator": (E.INVALID_GROUP_ID, E.GROUP_AUTHORIZATION_FAILED),
    "JoinGroup": (
        E.INCONSISTENT_GROUP_PROTOCOL,
        E.INVALID_SESSION_TIMEOUT,
        E.GROUP_MAX_SIZE_REACHED,
        E.GROUP_AUTHORIZATION_FAILED,
    ),
    "Heartbeat": (E.GROUP_AUTHORIZATION_FAILED,),
    "OffsetCommit": (E.OFFSET_METADATA_TOO_LARGE, E.TOPIC_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED),
    "OffsetFetch": (E.GROUP_AUTHORIZATION_FAILED,),
}
"""Errors by request that no further attempt mends. The last one is the answer from then on."""

_HANDLERS: Final = {
    "FindCoordinator": "AbstractCoordinator.FindCoordinatorResponseHandler",
    "JoinGroup": "AbstractCoordinator.JoinGroupResponseHandler",
    "SyncGroup": "AbstractCoordinator.SyncGroupResponseHandler",
    "Heartbeat": "AbstractCoordinator.HeartbeatResponseHandler",
    "ConsumerGroupHeartbeat": "KIP-848; AbstractHeartbeatRequestManager.onErrorResponse",
    "OffsetCommit": "ConsumerCoordinator.OffsetCommitResponseHandler",
    "OffsetFetch": "ConsumerCoordinator.OffsetFetchResponseHandler",
}
_NAMES: Final = {
    "FindCoordinator": "find",
    "JoinGroup": "join",
    "SyncGroup": "sync",
    "Heartbeat": "heartbeat",
    "ConsumerGroupHeartbeat": "epoch",
    "OffsetCommit": "commit",
    "OffsetFetch": "position",
}
_OF_JOINED: Final = frozenset({"Heartbeat", "ConsumerGroupHeartbeat", "OffsetCommit"})
"""Requests that are refused once the client has joined; the others are refused from its start."""


def _for_protocol(api: str, check: Check) -> Check:
    if api == "ConsumerGroupHeartbeat":
        return of_consumer_protocol(check)
    return of_classic(check) if api in ("JoinGroup", "SyncGroup", "Heartbeat") else check


def _plural(api: str, count: int | None = None) -> str:
    name = f"{api}es" if api.endswith("h") else f"{api}s"
    return name if count is None else f"{count} {name}"


def _listed(errors: tuple[E, ...]) -> str:
    return ", ".join(each.name for each in errors)


def _survived(api: str, errors: tuple[E, ...]) -> ClientTrouble:
    is_joined = api in _OF_JOINED
    return ClientTrouble(
        f"{_NAMES[api]}-errors",
        f"{_plural(api, len(errors))} are answered {_listed(errors)}, one each",
        f"send {api} again after each, with time in between, and be a member at the end",
        _HANDLERS[api],
        _for_protocol(api, partial(checks.survives_errors, api, errors)),
        act=acts.stacked_and_met(api, errors) if is_joined else None,
        before=None if is_joined else acts.stacked(api, errors),
    )


def _final(api: str, errors: tuple[E, ...]) -> ClientTrouble:
    is_joined = api in _OF_JOINED
    refused = acts.refused_for_good(api, errors)
    each = "each" if len(errors) == 1 else "one each, and the last one from then on"
    return ClientTrouble(
        f"{_NAMES[api]}-final",
        f"{_plural(api)} are answered {_listed(errors)}, {each}",
        "stop, or wait between its attempts",
        _HANDLERS[api],
        _for_protocol(api, partial(checks.does_not_insist, api, errors)),
        act=refused if is_joined else None,
        before=None if is_joined else refused,
        is_watched=True,
    )


ERROR_TROUBLES: Final = (
    *(_survived(api, errors) for api, errors in SURVIVED.items()),
    *(_final(api, errors) for api, errors in FINAL.items()),
)
"""The troubles of single requests, in the order of the two tables."""
