"""ACLs: created, listed and deleted by requests, stored as records, and enforced for principals and hosts."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Context, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.coordinator.storage.topics_log.base import changed, whole_as_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.security.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from tests.coordinator.core.driver import DrivenNode

TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, DESCRIBE = 2, 3, 4, 8
DENY, ALLOW = 2, 3
ALICE, ADMIN = "User:alice", "User:admin"
EVERY_ACL: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def secured(**settings: Any) -> DrivenNode:
    return DrivenNode(authorizer_class_name=STANDARD_AUTHORIZER, super_users=ADMIN, **settings)


def ask(driven: DrivenNode, request: Request, version: int, principal: str = ADMIN, host: str = "/127.0.0.1") -> Any:
    token = object()
    driven.request(token, request, Context(version, "client", host, principal))
    return driven.replies[token]


def entry(**changed: Any) -> AclCreation:
    fields: dict[str, Any] = {
        "resource_type": GROUP,
        "resource_name": "g",
        "resource_pattern_type": LITERAL,
        "principal": ALICE,
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**(fields | changed))


def create(driven: DrivenNode, *entries: AclCreation, principal: str = ADMIN) -> list[ErrorCode]:
    answer = ask(driven, CreateAclsRequest(creations=entries), 3, principal)
    return [result.error_code for result in answer.results]


def listed(driven: DrivenNode, **changed: Any) -> list[tuple[str, str]]:
    answer = ask(driven, DescribeAclsRequest(**(EVERY_ACL | changed)), 3)
    return [(resource.resource_name, acl.principal) for resource in answer.resources for acl in resource.acls]


def heartbeat(driven: DrivenNode, principal: str = ALICE, host: str = "/127.0.0.1") -> ErrorCode:
    found: ErrorCode = ask(
        driven, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4, principal, host
    ).error_code
    return found


DENIED, ALLOWED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_MEMBER_ID


def test_a_stock_broker_keeps_no_acls() -> None:
    driven = DrivenNode()
    assert create(driven, entry()) == [ErrorCode.SECURITY_DISABLED]
    assert ask(driven, DescribeAclsRequest(**EVERY_ACL), 1).error_code is ErrorCode.SECURITY_DISABLED
    removed = ask(driven, DeleteAclsRequest(filters=(DeleteAclsFilter(**EVERY_ACL),)), 1)
    assert removed.filter_results[0].error_code is ErrorCode.SECURITY_DISABLED
    assert heartbeat(driven) is ALLOWED


def test_acls_are_created_once_listed_by_filters_and_deleted() -> None:
    driven = secured()
    assert (
        create(driven, entry(), entry(), entry(resource_name="pay", resource_pattern_type=PREFIXED))
        == [ErrorCode.NONE] * 3
    )
    assert create(driven, entry()) == [ErrorCode.NONE]
    assert listed(driven) == [("g", ALICE), ("pay", ALICE)]
    assert listed(driven, resource_name_filter="payments", pattern_type_filter=2) == [("pay", ALICE)]
    assert listed(driven, resource_name_filter="payments") == []
    assert listed(driven, operation=WRITE) == []
    wanted = DeleteAclsFilter(**(EVERY_ACL | {"pattern_type_filter": PREFIXED}))
    removed = ask(driven, DeleteAclsRequest(filters=(wanted, wanted)), 3)
    assert [[acl.resource_name for acl in each.matching_acls] for each in removed.filter_results] == [["pay"]] * 2
    assert listed(driven) == [("g", ALICE)]


def test_only_who_may_alter_the_cluster_changes_acls() -> None:
    driven = secured()
    assert create(driven, entry(), principal=ALICE) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    refused = ask(driven, DescribeAclsRequest(**EVERY_ACL), 3, ALICE)
    assert (refused.error_code, refused.resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
    assert listed(driven) == []


def test_acls_are_read_from_the_log_again() -> None:
    driven = secured()
    create(driven, entry(), entry(operation=DESCRIBE))
    wanted = DeleteAclsFilter(**(EVERY_ACL | {"operation": DESCRIBE}))
    ask(driven, DeleteAclsRequest(filters=(wanted,)), 3)
    records = driven.node.topics_records()
    driven.node = Node(driven.node.settings, driven._new_id)
    driven.see_cluster()
    assert heartbeat(driven) is DENIED
    driven.step(TopicsChanged(((1, records),), 1, whole=True))
    assert len(listed(driven)) == 1
    assert heartbeat(driven) is not DENIED
    driven.step(TopicsChanged(((2, ()),), 2, whole=True))
    assert listed(driven) == []
    assert heartbeat(driven) is DENIED


@pytest.mark.parametrize(
    ("host", "client", "expected"),
    [
        ("*", "/10.0.0.7", ALLOWED),
        ("10.0.0.7", "/10.0.0.7", ALLOWED),
        ("10.0.0.7", "/10.0.0.8", DENIED),
        ("10.0.0.0/24", "/10.0.0.8", ALLOWED),
        ("10.0.0.0/24", "/10.0.1.8", DENIED),
        ("10.0.0.0/24", "/0:0:0:0:0:0:0:1", DENIED),
        ("fe80::/10", "/fe80:0:0:0:0:0:0:1", ALLOWED),
    ],
)
def test_hosts_are_addresses_or_ranges(host: str, client: str, expected: ErrorCode) -> None:
    driven = secured()
    assert create(driven, entry(host=host)) == [ErrorCode.NONE]
    assert heartbeat(driven, host=client) is expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": 99},
        {"resource_name": ""},
        {"resource_type": CLUSTER},
        {"principal": "alice"},
        {"principal": f"User:{'a' * 2_000}"},
        {"host": ""},
        {"host": "10.0.0.0/33"},
        {"host": "10.0.0/8"},
    ],
)
def test_a_wrong_entry_is_refused_and_the_others_are_stored(wrong: dict[str, Any]) -> None:
    driven = secured()
    assert create(driven, entry(**wrong), entry()) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert listed(driven) == [("g", ALICE)]


@pytest.mark.parametrize(
    ("numbers", "error"),
    [
        ({"resource_type": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"resource_pattern_type": 2}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"operation": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"permission_type": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"resource_type": 0}, ErrorCode.INVALID_REQUEST),
        ({"permission_type": 0}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_numbers_of_filters_and_of_nothing_refuse_the_whole_request(numbers: dict[str, Any], error: ErrorCode) -> None:
    driven = secured()
    assert create(driven, entry(**numbers), entry()) == [error, error]
    assert listed(driven) == []


def test_their_number_is_bounded() -> None:
    driven = secured(emulator_max_acls=2)
    assert create(driven, *(entry(resource_name=name) for name in "abca")) == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.NONE,
    ]


def test_a_denial_of_the_settings_is_before_all_acls() -> None:
    driven = secured(emulator_deny=("User:*:READ:group=g",))
    create(driven, entry())
    assert heartbeat(driven) is DENIED
    assert heartbeat(driven, ADMIN) is DENIED


def test_a_change_is_seen_by_the_next_request() -> None:
    driven = secured(allow_everyone_if_no_acl_found=True)
    assert heartbeat(driven) is ALLOWED
    create(driven, entry(principal="User:bob"))
    assert heartbeat(driven) is DENIED
    create(driven, entry())
    assert heartbeat(driven) is ALLOWED
    create(driven, entry(operation=ALL, permission_type=DENY, principal="User:*"))
    assert heartbeat(driven) is DENIED


def test_a_denial_does_not_reveal_what_exists() -> None:
    driven = secured()
    names = (MetadataRequestTopic(name="t"), MetadataRequestTopic(name="missing"))
    found = ask(driven, MetadataRequest(topics=names), 9, ALICE)
    assert {topic.error_code for topic in found.topics} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert ask(driven, MetadataRequest(topics=None), 9, ALICE).topics == ()


def test_clients_that_do_not_log_in_have_the_principals_of_their_client_ids() -> None:
    driven = secured(emulator_principals="client=User:alice;cli*=User:bob")
    create(driven, entry())
    anonymous = "User:ANONYMOUS"
    assert heartbeat(driven, anonymous) is ALLOWED
    assert heartbeat(driven, "User:bob") is DENIED
    other = secured(emulator_principals="cli*=User:bob;c*=User:alice")
    create(other, entry())
    assert heartbeat(other, anonymous) is DENIED
    with pytest.raises(ValueError, match="expected CLIENT=TYPE:NAME"):
        secured(emulator_principals="alice")


def test_acls_are_rows_of_the_topics_log() -> None:
    driven = secured()
    create(driven, entry(host="10.0.0.0/8"), entry(resource_pattern_type=PREFIXED))
    records = driven.node.topics_records()
    assert changed(0, [(1, whole_as_text(records))]).changes == ((1, records),)
