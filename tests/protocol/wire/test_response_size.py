"""No response is larger than one may be, and one that repeats an object costs no more than the object."""

from __future__ import annotations

import tracemalloc
from typing import Final

import pytest

from rejoin.protocol.limits import MAX_ANSWER_BYTES
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from rejoin.protocol.messages.groups.list_groups import ListedGroup, ListGroupsResponse
from rejoin.protocol.registry import DESCRIBE_GROUPS
from rejoin.protocol.wire.errors import ResponseTooLarge
from rejoin.protocol.wire.source import Layout
from rejoin.protocol.wire.writer import Writer, compile_writer
from tests.benchmarks.calls import calls_of
from tests.protocol.wire.messages import codec

V5: Final = Layout(5, True)
MEGABYTE: Final = 2**20


def described(members: int, size: int, group_id: str = "g") -> DescribedGroup:
    of_members = tuple(
        DescribedGroupMember(member_id=f"member-{number}", member_metadata=bytes(size)) for number in range(members)
    )
    return DescribedGroup(group_id=group_id, members=of_members)


def calls_until_refused(write: Writer, response: Response) -> int:
    def refused() -> None:
        with pytest.raises(ResponseTooLarge):
            write(response)

    return calls_of(refused)


def test_a_response_beyond_the_bound_is_refused_before_it_is_made() -> None:
    groups = tuple(described(1, 2 * MEGABYTE, f"group-{number}") for number in range(200))
    response = DescribeGroupsResponse(groups=groups)
    tracemalloc.start()
    try:
        with pytest.raises(ResponseTooLarge, match="too large; expected at most 104,857,600 bytes"):
            codec(DESCRIBE_GROUPS, 5).write_response(response)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_ANSWER_BYTES + 10 * MEGABYTE


def test_many_small_entries_are_refused_while_they_are_written() -> None:
    write = compile_writer(ListGroupsResponse, Layout(4, True), most_bytes=10_000)
    listed = ListedGroup(group_id="g" * 30, protocol_type="consumer", group_state="Empty")
    assert len(write(ListGroupsResponse(groups=(listed,) * 150))) < 10_000
    few, many = (calls_until_refused(write, ListGroupsResponse(groups=(listed,) * count)) for count in (2_000, 200_000))
    assert many < few + 100


def test_a_repeated_object_is_written_once() -> None:
    write, plain = codec(DESCRIBE_GROUPS, 5).write_response, compile_writer(DescribeGroupsResponse, V5)
    one, other = described(100, 10), described(3, 5, "h")
    response = DescribeGroupsResponse(groups=(one, other, one, one, other) * 40)
    assert write(response) == plain(response), "the bytes are those of a writer that does not look"
    once = calls_of(lambda: write(DescribeGroupsResponse(groups=(one, other))))
    assert calls_of(lambda: write(response)) < 2 * once + 5 * len(response.groups)


def test_many_small_repetitions_of_a_large_object_are_too_large() -> None:
    response = DescribeGroupsResponse(groups=(described(2, MEGABYTE),) * 300)
    assert calls_until_refused(codec(DESCRIBE_GROUPS, 5).write_response, response) < 3_000
