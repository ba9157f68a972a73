"""The size of a response in JSON is known before it is written."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rejoin.coordinator.service.refusals.json_size import check_json_size
from rejoin.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from rejoin.protocol.registry import FETCH
from rejoin.protocol.wire.errors import ResponseTooLarge
from tests.benchmarks.calls import calls_of
from tests.protocol.wire.messages import VERSIONS, random_message
from tests.suite.cases import for_each


@for_each("api, version", VERSIONS, ids=lambda row: f"{row[0].name} {row[1]}")
def test_the_size_in_json_is_known_roughly(api: Any, version: int) -> None:
    random = Random(f"{api.name} {version}")
    for _ in range(3):
        response = random_message(api.response, version, random)
        size = len(response.to_json(version))
        check_json_size(response, version, most_bytes=4 * size + 500)
        if size > 2_000 and api is not FETCH:  # record batches do not count
            with pytest.raises(ResponseTooLarge):
                check_json_size(response, version, most_bytes=size // 4)


def test_a_repeated_object_is_measured_once() -> None:
    group = DescribedGroup(members=(DescribedGroupMember(member_metadata=bytes(1_000)),) * 100)

    def refused() -> None:
        with pytest.raises(ResponseTooLarge):
            check_json_size(DescribeGroupsResponse(groups=(group,) * 10_000), 5)

    assert calls_of(refused) < 20_000
