"""A producer's requests as lines that two clients can be compared by, and the differences that are meant.

Each client has the requests of its transactions and records in their order, and those for metadata each once, as their
number is a matter of time. What is asked again and again until an answer changes is one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from conformance.members.proxy import ProxiedExchange
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.wire.record_batch import CODEC_MASK, TRANSACTIONAL_BIT, parse_header

DATA: Final = {"Metadata", "DescribeCluster"}
PASSING: Final = ("-> COORDINATOR_LOAD_IN_PROGRESS", "-> COORDINATOR_NOT_AVAILABLE", "-> CONCURRENT_TRANSACTIONS")
"""Answers until something is ready: how many there are is a matter of time."""

_CODECS: Final = ("", " gzip", " snappy", " lz4", " zstd")


def recorded(exchanges: Sequence[ProxiedExchange], name: str, outcomes: list[str]) -> dict[str, Any]:
    """All that is kept of a client in a life."""
    own = [each for each in exchanges if each.client_id.startswith(f"{name}.")]
    ids = sorted({each.client_id for each in own})
    return {
        "outcomes": outcomes,
        "producers": {
            each.removeprefix(f"{name}."): _sequences([one for one in own if one.client_id == each], name)
            for each in ids
        },
        "backoffs": backoffs(own),
    }


def _sequences(exchanges: Iterable[ProxiedExchange], name: str) -> dict[str, list[str]]:
    requests: list[str] = []
    data: list[str] = []
    for each in exchanges:
        line = _line(each).replace(name, "…")
        if line.endswith(PASSING):
            continue
        if each.api in DATA:
            if line not in data:
                data.append(line)
        elif not requests or requests[-1] != line:
            requests.append(line)
    return {"requests": requests, "data": sorted(data)}


def backoffs(exchanges: Iterable[ProxiedExchange]) -> dict[str, int]:
    """Milliseconds from an error, or from a lost answer, to the same request again: the median of each kind."""
    waits: dict[str, list[float]] = {}
    failed: dict[tuple[str, str], tuple[str, float]] = {}
    for each in exchanges:
        key = each.client_id, each.api
        error, since = failed.pop(key, ("", 0.0))
        if error and each.at >= since:
            waits.setdefault(f"{each.api} after {error}", []).append(each.at - since)
        if each.answered_at is not None and (found := _error(each)) != "NONE":
            failed[key] = found, each.answered_at
    return {kind: round(1_000 * median(gaps)) for kind, gaps in sorted(waits.items())}


def _error(each: ProxiedExchange) -> str:
    response: Any = each.response
    if response is None:
        return "no answer" if each.answered_at is None else "a lost answer"
    codes = list(_codes(response))
    return next((code.name for code in codes if code is not ErrorCode.NONE), "NONE")


def _codes(response: Any) -> Iterable[ErrorCode]:
    yield getattr(response, "error_code", ErrorCode.NONE)
    for name in ("coordinators", "responses", "topics", "partition_responses", "partitions"):
        for each in getattr(response, name, ()) or ():
            yield from _codes(each)


def _line(each: ProxiedExchange) -> str:
    request: Any = each.request
    error = _error(each)
    match each.api:
        case "Metadata":
            named = "all" if request.topics is None else " ".join(sorted(topic.name or "" for topic in request.topics))
            return f"Metadata {named or 'none'} create={request.allow_auto_topic_creation}"
        case "FindCoordinator":
            return f"FindCoordinator {request.key_type} {' '.join(request.coordinator_keys)} -> {error}"
        case "InitProducerId":
            known = "" if request.producer_id < 0 else f" epoch={request.producer_epoch}"
            who = f"{request.transactional_id} {request.transaction_timeout_ms}"
            return f"InitProducerId {who}{known} -> {error}"
        case "Produce":
            sent = [_batch(part) for topic in request.topic_data for part in topic.partition_data]
            who = f" {request.transactional_id}" if request.transactional_id else ""
            return f"Produce{who} acks={request.acks} timeout={request.timeout_ms} {' '.join(sorted(sent))} -> {error}"
        case "AddPartitionsToTxn":
            return f"AddPartitionsToTxn -> {error}"
        case "AddOffsetsToTxn":
            return f"AddOffsetsToTxn {request.group_id} epoch={request.producer_epoch} -> {error}"
        case "TxnOffsetCommit":
            offsets = [
                f"{each.partition_index}={each.committed_offset}"
                for topic in request.topics
                for each in topic.partitions
            ]
            where = (
                f"{request.group_id} epoch={request.producer_epoch} generation={request.generation_id_or_member_epoch}"
            )
            return f"TxnOffsetCommit {where} {' '.join(offsets)} -> {error}"
        case "EndTxn":
            end = "commits" if request.committed else "aborts"
            return f"EndTxn epoch={request.producer_epoch} {end} -> {error}"
    return each.api


def _batch(part: Any) -> str:
    header = parse_header(bytes(part.records))
    sequence = f"epoch={header.producer_epoch} sequence={header.base_sequence}"
    whose = f" {sequence}" if header.producer_id >= 0 else ""
    codec = _CODECS[header.attributes & CODEC_MASK]
    transactional = " transactional" if header.attributes & TRANSACTIONAL_BIT else ""
    return f"{part.index}[{header.records_count} records{whose}{codec}{transactional}]"


class RequestDifference(NamedTuple):
    """Lines of one client that the other does not have, and why that is meant."""

    client: str
    begins: str
    why: str


DIFFERENCES: Final = (
    RequestDifference(
        "java",
        "Metadata none ",
        "A transactional producer asks its bootstrap server for the nodes before it looks for its coordinator. Ours "
        "asks that server for the coordinator at once.",
    ),
)


def compared(client: str, lines: Iterable[str]) -> list[str]:
    """Lines without those that are meant to differ."""
    own = tuple(each.begins for each in DIFFERENCES if each.client == client)
    return [line for line in lines if not line.startswith(own)]
