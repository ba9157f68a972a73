"""Calls of confluent-kafka's AdminClient, each with its result as a line of JSON: a text, or an error and its words.

python -m conformance.clients.admin.confluent_calls SERVERS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

SECONDS: Final = 20.0
SETTLED_SECONDS: Final = 2.0
"""How long Kafka may take until a change that it has confirmed can be read."""
TOPIC: Final = "admin-topic"
ANY_NAME: Final[Any] = None
EVERY_ACL: Final = AclBindingFilter(
    ResourceType.ANY, ANY_NAME, ResourcePatternType.ANY, ANY_NAME, ANY_NAME, AclOperation.ANY, AclPermissionType.ANY
)
MATCHING: Final = AclBindingFilter(
    ResourceType.TOPIC,
    "payments",
    ResourcePatternType.MATCH,
    ANY_NAME,
    ANY_NAME,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def show(call: str, work: Callable[[], Any]) -> None:
    """Print the result of a call."""
    words = ""
    if call.startswith(("describe", "list")):
        time.sleep(SETTLED_SECONDS)
    try:
        result = str(work())
    except KafkaException as problem:
        error = problem.args[0]
        result, words = f"error: {error.name()}", error.str()
    print(json.dumps({"call": call, "result": result, "words": words}), flush=True)


def done(futures: dict[Any, Any]) -> Any:
    """The results of a call that has a future for each thing that it names."""
    return sorted(str(future.result(SECONDS)) for future in futures.values())


def _acl(name: str, kind: ResourcePatternType, principal: str, operation: AclOperation) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, kind, principal, "*", operation, AclPermissionType.ALLOW)


def acls(admin: AdminClient) -> None:
    """ACLs are made, shown and removed."""
    orders = _acl("orders", ResourcePatternType.LITERAL, "User:alice", AclOperation.READ)
    pay = _acl("pay", ResourcePatternType.PREFIXED, "User:bob", AclOperation.WRITE)
    bad = _acl("orders", ResourcePatternType.LITERAL, "alice", AclOperation.READ)
    show("create ACLs", lambda: done(admin.create_acls([orders, pay])))
    show("create ACLs, refused", lambda: done(admin.create_acls([bad])))
    show("describe ACLs", lambda: sorted(map(str, admin.describe_acls(EVERY_ACL).result(SECONDS))))
    show("describe ACLs that match", lambda: sorted(map(str, admin.describe_acls(MATCHING).result(SECONDS))))

    def delete() -> list[str]:
        found = admin.delete_acls([MATCHING, EVERY_ACL]).values()
        return sorted(str(acl) for future in found for acl in future.result(SECONDS))

    show("delete ACLs", delete)


def users(admin: AdminClient) -> None:
    """Users of SCRAM are made, shown and removed."""
    weak, strong = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    upsert = UserScramCredentialUpsertion("alice", ScramCredentialInfo(weak, 4096), b"alice-secret")
    few = UserScramCredentialUpsertion("alice", ScramCredentialInfo(strong, 10), b"alice-secret")

    def described(names: list[str] | None) -> list[Any]:
        answer: Any = admin.describe_user_scram_credentials(names)
        one_by_one = isinstance(answer, dict)
        found = {name: each.result(SECONDS) for name, each in answer.items()} if one_by_one else answer.result(SECONDS)
        return [
            (name, sorted((info.mechanism.name, info.iterations) for info in each.scram_credential_infos))
            for name, each in sorted(found.items())
        ]

    show("alter users of SCRAM", lambda: done(admin.alter_user_scram_credentials([upsert])))
    show("alter users of SCRAM, refused", lambda: done(admin.alter_user_scram_credentials([few])))
    show("describe users of SCRAM", lambda: described(None))
    show("describe an unknown user", lambda: described(["nobody"]))
    deletion = UserScramCredentialDeletion("alice", weak)
    show("remove a user of SCRAM", lambda: done(admin.alter_user_scram_credentials([deletion])))


def cluster(admin: AdminClient) -> None:
    """Leaders are elected, and settings of the broker are changed and shown."""
    first = TopicPartition(TOPIC, 0)

    def elected(how: ElectionType) -> list[str]:
        found = admin.elect_leaders(how, [first]).result(SECONDS)
        return [f"{each.topic} {each.partition}: {error and error.name()}" for each, error in found.items()]

    show("elect preferred leaders", lambda: elected(ElectionType.PREFERRED))
    show("elect any leaders", lambda: elected(ElectionType.UNCLEAN))
    name, value = "log.cleaner.threads", "2"
    op = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    broker = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[op])
    show("alter settings of a broker", lambda: done(admin.incremental_alter_configs([broker])))

    def described() -> list[str]:
        (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]).values()
        return [str(future.result(SECONDS)[name].value)]

    show("describe settings of a broker", described)


def main() -> None:
    """All calls, in their order."""
    admin = AdminClient({"bootstrap.servers": sys.argv[1], "client.id": "confluent", "socket.timeout.ms": 20_000})
    acls(admin)
    users(admin)
    cluster(admin)


if __name__ == "__main__":
    main()
