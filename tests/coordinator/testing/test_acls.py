"""ACLs in a test: settings for the fixture, and principals by client id."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.coordinator.testing import GroupCoordinator, OperationRefused, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rejoin.protocol.messages.security.acls import AclCreation, CreateAclsRequest
from rejoin.protocol.security.acl_bindings import AclBinding

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


async def described(coordinator: GroupCoordinator, client_id: str) -> ErrorCode:
    request = DescribeGroupsRequest(groups=("g",), include_authorized_operations=False)
    answer = await coordinator.call(request, 5, client_id)
    assert isinstance(answer, DescribeGroupsResponse)
    return answer.groups[0].error_code


DENIED, ALLOWED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NONE


async def test_principals_and_acls_of_the_start_and_later() -> None:
    acls: list[str | AclBinding] = ["User:alice:READ:group=g", AclBinding.parse("deny User:eve:ALL:group=*")]
    principals = {"app*": "User:alice"}
    async with running(principals=principals, acls=acls, socket=False, clock="virtual") as coordinator:
        assert [await described(coordinator, client) for client in ("app-1", "other")] == [ALLOWED, DENIED]
        await coordinator.set_principal("app-1", "User:eve")
        await coordinator.set_principal("other", "User:bob")
        assert [await described(coordinator, client) for client in ("app-1", "app-2", "other")] == [
            DENIED,
            ALLOWED,
            DENIED,
        ]
        every = await coordinator.set_acls(["User:bob:DESCRIBE:group=*"], ["User:alice:READ:group=g"])
        assert every == ["User:bob:DESCRIBE:group=*", "deny User:eve:ALL:group=*"]
        assert [await described(coordinator, client) for client in ("app-2", "other")] == [DENIED, ALLOWED]
        await coordinator.set_principal("other", None)
        assert await described(coordinator, "other") is DENIED
        await coordinator.reset()
        assert [await described(coordinator, client) for client in ("app-1", "other")] == [ALLOWED, DENIED]


async def test_quotas_of_the_start_and_later() -> None:
    limit = "client-id=app producer_byte_rate=1000"
    async with running(quotas=[limit], topics={"orders": 1}, socket=False, clock="virtual") as coordinator:
        assert await coordinator.set_quotas([]) == [limit]
        other = "user=alice,client-id=<default> request_percentage=50"
        assert await coordinator.set_quotas([other]) == [limit, other]
        assert await coordinator.set_quotas(["client-id=app producer_byte_rate=none"]) == [other]
        with pytest.raises(OperationRefused, match="greater than 0"):
            await coordinator.set_quotas(["user=bob producer_byte_rate=-1"])
        with pytest.raises(OperationRefused, match="authorizer"):
            await coordinator.set_acls(["User:a:READ:topic=t"])
        await coordinator.reset()
        assert await coordinator.set_quotas([]) == [limit]


async def test_requests_that_count_as_a_given_time_are_throttled_exactly() -> None:
    settings = {"emulator.request.time.ms": 60}
    async with running(quotas=["client-id=app request_percentage=1"], settings=settings, clock="virtual") as broker:
        request = DescribeGroupsRequest(groups=("g",), include_authorized_operations=False)
        times = []
        for client_id in ("app", "app", "other"):
            answer = await broker.call(request, 5, client_id)
            assert isinstance(answer, DescribeGroupsResponse)
            times.append(answer.throttle_time_ms)
    # 120 ms of work where ten windows allow 100: it takes two more seconds, of which one window is answered.
    assert times == [0, 1_000, 0]


@pytest.mark.parametrize(
    "given",
    [
        {"acls": "User:a:READ:topic=t"},
        {"acls": ["User:a"]},
        {"acls": ["User:a:READ:cluster=kafka-cluster", "User:a:READ:cluster=other"]},
        {"quotas": ["user=a"]},
        {"quotas": ["user=a nonsense=1"]},
        {"principals": {"a": "alice"}},
        {"principals": {"a;b": "User:alice"}},
    ],
)
async def test_arguments_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(given))}|expected"):
        async with running(socket=False, **given):
            pass
