"""Share groups (KIP-932) in the logs of brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import HIGH, Finding
from rejoin.pipeline.findings.formatting import period, times
from rejoin.pipeline.findings.observed_rows import all_exact
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.vocabulary import BROKER_LOG, SHARE_STATE_REFUSED

_FACTOR: Final = "share.coordinator.state.topic.replication.factor"
_TOO_FEW_BROKERS: Final = "INVALID_REPLICATION_FACTOR"


@reads(SHARE_STATE_REFUSED, columns=("problem",), of_all_groups=True, source=(BROKER_LOG,))
def share_partitions_not_initialized(causes: Causes) -> Iterator[Finding]:
    """The topic with the state of share groups has a higher replication factor than there are brokers. Without the
    topic no share-partition is initialised, and members of share groups have no partitions, however long they wait."""
    history = causes.history
    if not history.is_share_group:
        return
    since = min(each.joined_at_ms or 0 for each in history.sessions)
    refused = [
        each
        for each in history.events
        if each.event == SHARE_STATE_REFUSED
        and each.at_ms >= since
        and (each.more or {}).get("problem") == _TOO_FEW_BROKERS
    ]
    if not refused:
        return
    first, last = refused[0], refused[-1]
    yield Finding(
        "share-partitions-not-initialized",
        f"{history.group_id} could not be given partitions: __share_group_state was not created",
        f"{capital(times(len(refused)))} {period(first.at_ms, last.at_ms)} the brokers did not create "
        f"__share_group_state ({_TOO_FEW_BROKERS}). Its replication factor is higher than the number of brokers. While "
        "the topic is missing, the partitions of a share group are not initialised: its members join, send heartbeats "
        "and get an empty assignment, and no client logs an error.",
        0.0,
        first.at_ms,
        last.at_ms,
        setting=_FACTOR,
        advice=f"With fewer than three brokers, set {_FACTOR} and share.coordinator.state.topic.min.isr on the brokers "
        "to the number of brokers at most, and restart them. Members get their partitions when the coordinator tries "
        "again: half a minute after its start, in a Kafka 4.4.0.",
        numbers={"times": len(refused)},
        evidence=[each.as_evidence() for each in refused],
        exact=all_exact(refused),
        severity=HIGH,
    )
