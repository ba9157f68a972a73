"""`rejoin.Admin`: ACLs, quotas and users of SCRAM, over both listeners."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.admin.both_brokers import AUTHORIZED
from rejoin import Admin
from rejoin.client import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResource,
    CredentialDeletion,
    CredentialUpsertion,
    PatternType,
    Permission,
    QuotaHolder,
    QuotaLimits,
    ScramMechanism,
)
from rejoin.client.core.errors import CodedError
from rejoin.coordinator.core.security.resources import OPERATIONS, Operation, Resource
from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import double_text
from rejoin.protocol.security.quota_limits import DEFAULT
from tests.docs.texts import python_blocks

READS = AclBinding("User:alice", AclOperation.READ, AclResource.TOPIC, "orders")
DENIED = AclBinding.parse("deny User:mallory:ALL:group=secret-*")


async def test_acls_are_created_listed_and_deleted() -> None:
    async with running(settings=AUTHORIZED) as node:
        for server in (node.url, node.bootstrap_servers):
            async with Admin(bootstrap_servers=server) as admin:
                outcomes = await admin.create_acls([READS, DENIED, READS._replace(principal="alice")])
                assert [problem and problem.error for problem in outcomes.values()] == [
                    None,
                    None,
                    ErrorCode.INVALID_REQUEST,
                ]
                with pytest.raises(CodedError, match="alice"):
                    outcomes.check()
                assert sorted(await admin.describe_acls()) == [READS, DENIED]
                about = AclBindingFilter(
                    resource_type=AclResource.GROUP, resource_name="secret-plans", pattern_type=PatternType.MATCH
                )
                assert await admin.describe_acls(about) == [DENIED]
                deleted = await admin.delete_acls([about, AclBindingFilter.of(READS)])
                assert [(each.acls, each.error) for each in deleted.values()] == [((DENIED,), None), ((READS,), None)]
                assert await admin.describe_acls() == []


async def test_the_program_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = python_blocks("docs/security.md")
    async with running(settings=AUTHORIZED) as node:
        scope: dict[str, Any] = {}
        exec(program.replace("127.0.0.1:9092", node.bootstrap_servers).removesuffix("asyncio.run(main())\n"), scope)
        await scope["main"]()
    assert capsys.readouterr().out == "User:billing:READ:group=billing\n"


async def test_a_cluster_without_an_authorizer_says_so() -> None:
    async with running() as node, Admin(bootstrap_servers=node.url) as admin:
        with pytest.raises(CodedError, match="No Authorizer") as refusal:
            await admin.describe_acls()
        assert refusal.value.error is ErrorCode.SECURITY_DISABLED


async def test_quotas_are_set_listed_and_removed() -> None:
    alice = QuotaHolder(user="alice")
    with_client = QuotaHolder(user="alice", client_id=DEFAULT)
    async with running() as node, Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        changes = [QuotaLimits(alice, {"producer_byte_rate": 1_000}), QuotaLimits(with_client, {"nonsense": 1})]
        outcomes = await admin.alter_client_quotas(changes)
        assert outcomes[alice] is None
        refusal = outcomes[with_client]
        assert refusal is not None
        assert refusal.error is ErrorCode.INVALID_REQUEST
        await admin.alter_client_quotas([QuotaLimits.parse("user=alice,client-id=<default> request_percentage=50")])
        assert await admin.describe_client_quotas() == {
            alice: {"producer_byte_rate": 1_000},
            with_client: {"request_percentage": 50},
        }
        assert await admin.describe_client_quotas(alice, strict=True) == {alice: {"producer_byte_rate": 1_000}}
        assert list(await admin.describe_client_quotas(any_of=["client-id"])) == [with_client]
        (await admin.alter_client_quotas([QuotaLimits(alice, {"producer_byte_rate": None})])).check()
        assert list(await admin.describe_client_quotas()) == [with_client]


async def test_users_of_scram_are_set_listed_and_removed() -> None:
    async with running() as node, Admin(bootstrap_servers=node.url) as admin:
        carol = CredentialUpsertion("carol", ScramMechanism.SCRAM_SHA_256, "secret", 8_192)
        assert "secret" not in repr(carol)
        weak = CredentialUpsertion("dave", ScramMechanism.SCRAM_SHA_512, "secret", 10)
        outcomes = await admin.alter_user_scram_credentials([carol, weak])
        assert [problem and problem.error for problem in (outcomes["carol"], outcomes["dave"])] == [
            None,
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ]
        found = await admin.describe_user_scram_credentials()
        assert found["carol"].credentials == ((ScramMechanism.SCRAM_SHA_256, 8_192),)
        deletion = CredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
        (await admin.alter_user_scram_credentials([deletion])).check()
        (missing,) = (await admin.describe_user_scram_credentials(["carol"])).values()
        assert missing.error is not None
        assert missing.error.error is ErrorCode.RESOURCE_NOT_FOUND


def test_words_and_numbers_are_those_of_the_coordinator() -> None:
    assert {each.name: each.value for each in AclOperation if each is not AclOperation.ANY} == {
        each.name: each.code for each in Operation
    }
    assert {each.word: each.value for each in AclResource if each is not AclResource.ANY} == {
        each.value: each.code for each in Resource
    }
    from rejoin.client.commands.acls.actions import OPERATIONS as OF_THE_TOOL  # noqa: PLC0415

    for kind, operations in OPERATIONS.items():
        names = {each.name for each in OF_THE_TOOL[AclResource(kind.code)]}
        assert names == {"ALL", *(each.name for each in operations)}


@pytest.mark.parametrize(
    "text", ["User:a:READ:topic=orders", "deny User:*:ALL:group=secret-*", "User:a:ALTER:cluster=kafka-cluster"]
)
def test_an_acl_is_its_text(text: str) -> None:
    assert str(AclBinding.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "User:a", "User:a:READ", "User:a:FLY:topic=t", "User:a:READ:tropic=t", "x User:a:READ:topic=t"]
)
def test_a_text_that_is_no_acl_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        AclBinding.parse(text)


def test_quotas_are_their_text() -> None:
    text = "user=alice,client-id=<default> producer_byte_rate=1000 consumer_byte_rate=none"
    parsed = QuotaLimits.parse(text)
    assert parsed == (QuotaHolder("alice", DEFAULT), {"producer_byte_rate": 1_000, "consumer_byte_rate": None})
    assert str(parsed) == text
    for wrong in ("", "user=alice", "user= a=1", "name=a b=1", "user=a producer_byte_rate=many"):
        with pytest.raises(ValueError, match="expected"):
            QuotaLimits.parse(wrong)


def test_numbers_are_written_as_java_does() -> None:
    shown = [double_text(number) for number in (0.0, 12.5, 9_999_999.0, 1e7, 123_456_789.0, 0.0005, -2.5e9, 1e300)]
    assert shown == ["0.0", "12.5", "9999999.0", "1.0E7", "1.23456789E8", "5.0E-4", "-2.5E9", "1.0E300"]


def test_permissions_have_kafkas_numbers() -> None:
    assert (Permission.DENY, Permission.ALLOW) == (2, 3)
