"""Settings of the authorizer: who may do what."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from rejoin.coordinator.settings.types import Int32, SettingsPart

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _check_principals(text: str) -> str:
    for principal in filter(None, map(str.strip, text.split(";"))):
        if ":" not in principal:
            raise ValueError(f"{principal!r}: expected TYPE:NAME, as User:alice, with ; between principals")
    return text


class SecuritySettings(SettingsPart):
    """The authorizer, its super users, and its bounds."""

    authorizer_class_name: Literal["", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"] = Field(
        default="",
        description="Empty: everything is allowed but for emulator.deny. Kafka's StandardAuthorizer: ACLs are kept and "
        "enforced.",
    )
    super_users: Annotated[str, AfterValidator(_check_principals)] = Field(
        default="", description="Principals that may do everything, as User:admin;User:ops."
    )
    allow_everyone_if_no_acl_found: bool = Field(
        default=False, description="Allow everything on resources that no ACL is about, to everyone."
    )
    emulator_max_acls: Int32 = Field(
        default=10_000, ge=1, description="How many ACLs there may be. A CreateAcls for more is refused."
    )
