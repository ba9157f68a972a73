"""The authorizer against a slow model that looks at every ACL."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.security.acls import Acl, AclTable, creation, removal
from rejoin.coordinator.core.security.authorizer import Authorizer
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER

NAMES = ("a", "ab", "abc", "b", "*", "ba")
PRINCIPALS = ("User:a", "User:b", "User:*", "User:admin")
HOSTS = ("*", "1.1.1.1", "2.2.2.2")
IMPLIED = {8: {8, 3, 4, 6, 7}, 10: {10, 11}}
OPERATIONS = (2, 3, 4, 6, 8, 10, 11)

acls = st.builds(
    Acl,
    st.sampled_from((2, 3)),
    st.sampled_from(NAMES),
    st.sampled_from((3, 4)),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from((2, 3)),
)
requests = st.tuples(
    st.sampled_from(("User:a", "User:b", "User:admin")),
    st.sampled_from(HOSTS[1:]),
    st.sampled_from([each for each in Operation if each.code in OPERATIONS[1:]]),
    st.sampled_from((Resource.TOPIC, Resource.GROUP)),
    st.sampled_from((*NAMES, "abcd", "c")),
)


def allowed(present: set[Acl], request: tuple[str, str, Operation, Resource, str], otherwise: bool) -> bool:
    """Kafka's rules, each read aloud: deny before allow, and no ACL at all is the setting's affair."""
    principal, host, operation, resource, name = request
    if principal == "User:admin":
        return True
    on_it = [acl for acl in present if acl.resource_type == resource.code and fits(acl, name)]
    if not on_it:
        return otherwise
    by = [acl for acl in on_it if acl.principal in (principal, "User:*") and acl.host in (host, "*")]
    if any(acl.permission_type == 2 and acl.operation in (2, operation.code) for acl in by):
        return False
    covering = IMPLIED.get(operation.code, {operation.code}) | {2}
    return any(acl.permission_type == 3 and acl.operation in covering for acl in by)


def fits(acl: Acl, name: str) -> bool:
    if acl.pattern_type == 4:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(acls, st.integers(0, 30), requests), max_size=40), st.booleans())
def test_decisions_are_those_of_a_model_that_looks_at_every_acl(steps: list[object], otherwise: bool) -> None:
    table = AclTable()
    authorizer = Authorizer(
        Settings(
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users="User:admin",
            allow_everyone_if_no_acl_found=otherwise,
        ),
        table,
    )
    for number, step in enumerate(steps):
        if isinstance(step, int):
            if table.by_id:
                table.replay(removal(list(table.by_id)[step % len(table)]))
        elif isinstance(step, Acl):
            if step not in table.ids:
                table.replay(creation(f"{number:022}", step))
        else:
            assert isinstance(step, tuple)
            principal, host, operation, resource, name = step
            found = authorizer.allows(Context(0, "c", f"/{host}", principal), operation, resource, name)
            assert found == allowed(set(table.ids), step, otherwise), step
    restored = AclTable()
    for record in table.records():
        restored.replay(record)  # type: ignore[arg-type]
    assert restored.by_id == table.by_id
