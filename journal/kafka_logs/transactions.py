"""Kafka's log lines about transactions, version by version, both written and read here.

Texts were compared with the sources of 2.0 to 3.8 and of 4.0 before its release, and with the classes and a recorded
log of 4.4. At the levels that brokers have switched on there is little: a producer id, a timeout, a marker that fails,
and a batch that a log refuses, with the exception on the next line.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import JAVA_SINCE, Template, Version

COORDINATOR: Final = "kafka.coordinator.transaction.TransactionCoordinator"
STATE_MANAGER: Final = "kafka.coordinator.transaction.TransactionStateManager"
MARKERS: Final = "kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler"
REPLICA_MANAGER: Final = "kafka.server.ReplicaManager"

PREFIXES: Final = {
    COORDINATOR: "[TransactionCoordinator id={node}] ",
    STATE_MANAGER: "[Transaction State Manager {node}]: ",
    MARKERS: "[Transaction Marker Request Completion Handler {node}]: ",
    REPLICA_MANAGER: "[ReplicaManager broker={node}] ",
}
"""The prefix of each logger."""

_LOG: Final = "__transaction_state-{partition}"
_REFUSED: Final = "Error processing append operation on partition {topic}-{number}"

TRANSACTION_LINES: Final[tuple[Template, ...]] = (
    Template(
        "txn_initialized",
        "Initialized transactionalId {transactional_id} with producerId {producer_id} and producer epoch "
        f"{{producer_epoch}} on partition {_LOG}",
        logger=COORDINATOR,
    ),
    Template(
        "txn_not_initialized",
        "Returning {error} error code to client for {transactional_id}'s InitProducerId request",
        logger=COORDINATOR,
    ),
    Template(
        "txn_timed_out",
        "Completed rollback ongoing transaction of transactionalId: {transactional_id} due to timeout",
        before=(2, 5),
        logger=COORDINATOR,
    ),
    Template(
        "txn_timed_out",
        "Completed rollback of ongoing transaction for transactionalId {transactional_id} due to timeout",
        (2, 5),
        logger=COORDINATOR,
    ),
    Template(
        "txn_remark",
        "Rollback of ongoing transaction for transactionalId {transactional_id} failed due to error {error}",
        (2, 5),
        logger=COORDINATOR,
        level="WARN",
        variant="rollback",
    ),
    Template(
        "txn_remark",
        "Elected as the txn coordinator for partition {partition} at epoch {coordinator_epoch}",
        (2, 8),
        logger=COORDINATOR,
        variant="elected",
    ),
    Template(
        "txn_remark",
        f"Loading transaction metadata from {_LOG}<2.5-: at epoch {{coordinator_epoch}}>",
        logger=STATE_MANAGER,
        variant="loading",
    ),
    Template(
        "txn_loaded",
        f"Finished loading {{records}} transaction metadata from {_LOG} in {{load_ms}} milliseconds"
        "<2.6-:, of which {scheduler_ms} milliseconds was spent in the scheduler.>",
        logger=STATE_MANAGER,
    ),
    Template(
        "txn_remark",
        f"Completed loading transaction metadata from {_LOG} for coordinator epoch {{coordinator_epoch}}",
        (2, 5),
        logger=STATE_MANAGER,
        variant="loaded",
    ),
    Template(
        "txn_remark",
        "Sending {transactional_id}'s transaction marker for partition {topic}-{number} has failed with error {error}, "
        "retrying with current coordinator epoch {coordinator_epoch}",
        logger=MARKERS,
        variant="marker",
    ),
    Template("txn_append_refused", _REFUSED, before=JAVA_SINCE, logger=REPLICA_MANAGER, level="ERROR"),
    # Kafka: only where the epoch is too low; other refusals are still errors.
    Template("txn_append_refused", _REFUSED, JAVA_SINCE, logger=REPLICA_MANAGER),
)
"""Every line; those without an event are ``txn_remark``."""

EXCEPTIONS: Final[tuple[Template, ...]] = (
    Template(
        "txn_fenced",
        "org.apache.kafka.common.errors.ProducerFencedException: Producer's epoch is no longer valid. There is "
        "probably another producer with a newer epoch. {producer_epoch} (request epoch), {current_epoch} (server "
        "epoch)",
        before=(2, 3),
    ),
    Template(
        "txn_fenced",
        "org.apache.kafka.common.errors.ProducerFencedException: Producer's epoch at offset {offset} is no longer "
        "valid in partition {topic}-{number}: {producer_epoch} (request epoch), {current_epoch} (current epoch)",
        (2, 3),
        (2, 5),
    ),
    Template(
        "txn_fenced",
        "org.apache.kafka.common.errors.<2.7-:InvalidProducerEpochException|ProducerFencedException>: Producer's epoch "
        "at offset {offset} in {topic}-{number} is {producer_epoch}, which is smaller than the last seen epoch "
        "{current_epoch}",
        (2, 5),
        (2, 8),
    ),
    Template(
        "txn_fenced",
        "org.apache.kafka.common.errors.InvalidProducerEpochException: Epoch of producer {producer_id} at offset "
        "{offset} in {topic}-{number} is {producer_epoch}, which is smaller than the last seen epoch {current_epoch}",
        (2, 8),
    ),
)
"""The line below one of ``txn_append_refused``."""


def transaction_line(kind: str, version: Version, variant: str = "") -> Template | None:
    """The line of a kind that a version prints; none where it is silent."""
    lines = (*TRANSACTION_LINES, *EXCEPTIONS)
    return next((each for each in lines if (each.kind, each.variant) == (kind, variant) and each.is_in(version)), None)
