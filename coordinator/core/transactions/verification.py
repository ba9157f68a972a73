"""Asks a transaction's coordinator whether partitions belong to it, or adds them (KIP-890).

Kafka: AddPartitionsToTxnManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator, Verified
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.protocol.brokers.releases import has_reached
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rejoin.protocol.types import TopicPartition

BROKERS_VERSION: Final = 5
FIRST_RELEASE_WITH_CHECKS: Final = "4.1"


def checks_here(release: str) -> bool:
    """Whether a partition's leader refuses a producer's first batch in a transaction before its coordinator is asked.

    Until 4.0 a producer without state in a partition may begin with any sequence, and a fenced one gets the error of
    its coordinator. Recorded on Kafka 4.0.2 and 4.1.2.
    """
    return has_reached(release, FIRST_RELEASE_WITH_CHECKS)


class TransactionVerification:
    """Asks the coordinators of transactions."""

    def __init__(self, coordinator: TransactionCoordinator, peers: PeerRequests) -> None:
        self._coordinator = coordinator
        self._peers = peers

    def ask(
        self,
        transactional_id: str,
        producer: TxnProducer,
        partitions: Iterable[TopicPartition],
        *,
        adds: bool,
        on_verified: Callable[[Verified], None],
    ) -> None:
        """Verify that partitions are part of a transaction; with ``adds`` they become part of it."""
        wanted = list(partitions)
        again = partial(self.ask, transactional_id, producer, wanted, adds=adds, on_verified=on_verified)
        if not self._coordinator.when_ready(transactional_id, again):
            return
        leader = self._coordinator.leader_of(transactional_id)
        if leader is None:
            on_verified(dict.fromkeys(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if self._peers.is_own(leader.node_id):
            self._coordinator.verify(transactional_id, producer, wanted, adds=adds, on_verified=on_verified)
            return
        topics: dict[str, list[int]] = {}
        for topic, partition in wanted:
            topics.setdefault(topic, []).append(partition)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=not adds,
            topics=tuple(
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes)) for topic, indexes in topics.items()
            ),
        )
        request = AddPartitionsToTxnRequest(transactions=(transaction,))
        self._peers.ask(leader.node_id, request, BROKERS_VERSION, partial(_answered, wanted, on_verified))


def _answered(wanted: list[TopicPartition], on_verified: Callable[[Verified], None], response: Response | None) -> None:
    if not isinstance(response, AddPartitionsToTxnResponse):
        on_verified(dict.fromkeys(wanted, ErrorCode.NETWORK_EXCEPTION))
        return
    found = dict.fromkeys(wanted, response.error_code)
    for transaction in response.results_by_transaction:
        for topic in transaction.topic_results:
            for result in topic.results_by_partition:
                found[TopicPartition(topic.name, result.partition_index)] = result.partition_error_code
    on_verified(found)
