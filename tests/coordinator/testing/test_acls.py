"""ACLs in a test: settings for the fixture, and principals by client id."""

from __future__ import annotations

import pytest

from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rejoin.protocol.messages.security.acls import AclCreation, CreateAclsRequest

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin",
    "emulator.principals": "admin=User:admin;app*=User:alice",
}
READ_GROUP = AclCreation(
    resource_type=3,
    resource_name="g",
    resource_pattern_type=3,
    principal="User:alice",
    host="*",
    operation=3,
    permission_type=3,
)


@pytest.mark.parametrize("brokers", [1, 3])
async def test_every_broker_enforces_the_acls_of_the_cluster(brokers: int) -> None:
    async with running(settings=SETTINGS, brokers=brokers) as coordinator:

        async def described(client_id: str) -> set[ErrorCode]:
            found = set()
            for broker in range(1, brokers + 1):
                request = DescribeGroupsRequest(groups=("g",), include_authorized_operations=False)
                answer = await coordinator.call(request, 5, client_id, broker)
                assert isinstance(answer, DescribeGroupsResponse)
                found.add(answer.groups[0].error_code)
            return found

        assert await described("app-1") == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
        await coordinator.call(CreateAclsRequest(creations=(READ_GROUP,)), 3, "admin")
        assert ErrorCode.GROUP_AUTHORIZATION_FAILED not in await described("app-1")
        assert await described("other") == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
