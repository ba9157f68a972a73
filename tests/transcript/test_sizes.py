"""The memory that a value takes, as recordings count it."""

from __future__ import annotations

from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from rejoin.transcript.sizes import size_of


def test_an_object_that_stands_in_a_list_many_times_counts_once() -> None:
    group = DescribedConsumerGroup(group_id="g" * 10_000)
    once = size_of(ConsumerGroupDescribeResponse(groups=(group,)))
    repeated = size_of(ConsumerGroupDescribeResponse(groups=(group,) * 1_000))
    assert repeated < once + 1_000 * 8
