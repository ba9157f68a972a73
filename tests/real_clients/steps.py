"""The life of a client, step by step: kafka-wire's whole life but for transactions. Each step goes on from the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.real_clients.client import Client

TOPIC: Final = "orders"
GROUP: Final = "orders-app"
PLAIN: Final = [f"plain-{number}" for number in range(100)]
IDEMPOTENT: Final = [f"idempotent-{number}" for number in range(10)]
SECONDS_1970: Final = 1_000
FAR_FUTURE: Final = 32_503_680_000_000


def create_a_topic(client: Client) -> None:
    client.create_topic(TOPIC, 3)
    # Here and below: of several nodes the one that is asked may hear of it a moment later, as in Kafka.
    client.poll_until(lambda: client.partitions_of(TOPIC) == 3)


def produce(client: Client) -> None:
    written = client.produce(TOPIC, PLAIN, idempotent=False)
    assert len(set(written)) == len(PLAIN)
    assert {partition for partition, _ in written} == {0, 1, 2}


def produce_idempotently(client: Client) -> None:
    written = client.produce(TOPIC, IDEMPOTENT, idempotent=True)
    assert len(set(written)) == len(IDEMPOTENT)


def consume_in_a_group_of_two(client: Client) -> None:
    client.join("one", GROUP, TOPIC)
    client.join("two", GROUP, TOPIC)
    client.poll_until_shared(members=2, partitions=3)
    client.poll_until(lambda: set(client.seen) == {*PLAIN, *IDEMPOTENT})


def commit(client: Client) -> None:
    """The first member may have read everything before the second joined, and reads it again after the rebalance."""

    def all_is_committed() -> bool:
        client.commit()
        return sum(client.committed(GROUP, TOPIC).values()) == len(PLAIN) + len(IDEMPOTENT)

    client.poll_until(all_is_committed)


def a_third_joins(client: Client) -> None:
    client.join("three", GROUP, TOPIC)
    client.poll_until_shared(members=3, partitions=3)


def one_leaves(client: Client) -> None:
    client.leave("three")
    client.poll_until_shared(members=2, partitions=3)
    client.seen.clear()
    client.produce(TOPIC, ["more"], idempotent=False)
    client.poll_until(lambda: bool(client.seen))
    assert client.seen == ["more"], "they go on from what was committed"


def committed_offsets(client: Client) -> None:
    assert sum(client.committed(GROUP, TOPIC).values()) == len(PLAIN) + len(IDEMPOTENT)


def offsets_by_time(client: Client) -> None:
    assert client.offsets_at(TOPIC, SECONDS_1970, 3) == {0: 0, 1: 0, 2: 0}
    assert client.offsets_at(TOPIC, FAR_FUTURE, 3) == {0: None, 1: None, 2: None}


def describe_a_group(client: Client) -> None:
    state, members = client.describe_group(GROUP)
    assert (state.upper(), members) == ("STABLE", 2)


def list_groups(client: Client) -> None:
    assert GROUP in client.list_groups()


def describe_configs(client: Client) -> None:
    assert client.topic_config(TOPIC)["cleanup.policy"] == "delete"


def alter_configs(client: Client) -> None:
    client.alter_topic_config(TOPIC, "retention.ms", "1000000")
    client.poll_until(lambda: client.topic_config(TOPIC)["retention.ms"] == "1000000")


def add_partitions(client: Client) -> None:
    client.grow_topic(TOPIC, 4)
    client.poll_until(lambda: client.partitions_of(TOPIC) == 4)


def delete_records(client: Client) -> None:
    assert client.delete_records(TOPIC, 0, 5) == 5
    assert client.offsets_at(TOPIC, SECONDS_1970, 1) == {0: 5}


def delete_a_group(client: Client) -> None:
    client.leave_all()
    client.delete_group(GROUP)
    assert GROUP not in client.list_groups()


def delete_a_topic(client: Client) -> None:
    client.leave_all()
    client.delete_topic(TOPIC)
    client.poll_until(lambda: client.partitions_of(TOPIC) == 0)


STEPS: Final[dict[str, Callable[[Client], None]]] = {
    step.__name__.replace("_", " "): step
    for step in (
        create_a_topic,
        produce,
        produce_idempotently,
        consume_in_a_group_of_two,
        commit,
        a_third_joins,
        one_leaves,
        committed_offsets,
        offsets_by_time,
        describe_a_group,
        list_groups,
        describe_configs,
        alter_configs,
        add_partitions,
        delete_records,
        delete_a_group,
        delete_a_topic,
    )
}
