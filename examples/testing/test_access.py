"""A consumer is refused by an ACL, without users or certificates: with pytest, the fixture, and confluent-kafka."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from rejoin.coordinator.testing import BlockingGroupCoordinator


# A consumer that may not use its group is refused, until an administrator allows it.
@pytest.mark.group_coordinator(
    topics={"orders": 1},
    principals={"billing*": "User:billing"},
    acls=["User:billing:READ:topic=orders"],
)
def test_a_consumer_is_refused_until_it_may_use_its_group(group_coordinator: BlockingGroupCoordinator) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": group_coordinator.bootstrap_servers,
            "group.id": "invoices",
            "client.id": "billing-1",
        }
    )
    consumer.subscribe(["orders"])
    refused = consumer.poll(30)
    assert refused is not None
    assert "GROUP_AUTHORIZATION_FAILED" in str(refused.error())

    group_coordinator.set_acls(create=["User:billing:READ:group=invoices"])
    group_coordinator.wait_for_group("invoices", state="Stable", members=1)
    assert wait_for_assignment(consumer)
    consumer.close()


def wait_for_assignment(consumer: Consumer) -> bool:
    """Poll until it has its partition: a close before that could wait for the coordinator in this process."""
    for _ in range(300):
        consumer.poll(0.1)
        if consumer.assignment():
            return True
    return False
