"""Settings of the authorizer: who may do what."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _check_principals(text: str) -> str:
    for principal in filter(None, map(str.strip, text.split(";"))):
        if ":" not in principal:
            raise ValueError(f"{principal!r}: expected TYPE:NAME, as User:alice, with ; between principals")
    return text


def client_principals(text: str) -> list[tuple[str, str]]:
    """Client ids with their principals. Raises ``ValueError`` for what is not ``CLIENT=TYPE:NAME``."""
    found = []
    for pair in filter(None, map(str.strip, text.split(";"))):
        client_id, equals, principal = pair.partition("=")
        if not equals or ":" not in principal:
            raise ValueError(f"{pair!r}: expected CLIENT=TYPE:NAME, as billing-*=User:billing, with ; between pairs")
        found.append((client_id, principal))
    return found


def _check_clients(text: str) -> str:
    client_principals(text)
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
    emulator_max_scram_credentials: Int32 = Field(
        default=10_000,
        ge=1,
        description="How many credentials of SCRAM clients may make. An AlterUserScramCredentials for more is refused.",
    )
    delegation_token_secret_key: SecretStr = Field(
        default=SecretStr(""),
        description="Secret from which the HMACs of delegation tokens are made. Empty: there are no such tokens. Only "
        "from the environment.",
    )
    delegation_token_max_lifetime_ms: Int64 = Field(
        default=604_800_000, ge=1, description="Longest lifetime of a delegation token. It cannot be renewed beyond."
    )
    delegation_token_expiry_time_ms: Int64 = Field(
        default=86_400_000, ge=1, description="Time after which a delegation token expires unless it is renewed."
    )
    delegation_token_expiry_check_interval_ms: Int64 = Field(
        default=3_600_000, ge=1, description="Interval at which expired delegation tokens are removed."
    )
    emulator_max_delegation_tokens: Int32 = Field(
        default=10_000,
        ge=1,
        description="How many delegation tokens there may be. A CreateDelegationToken for more is refused.",
    )
    quota_window_num: Int32 = Field(
        default=11, ge=1, description="Windows over which the bytes of clients with quotas are counted."
    )
    quota_window_size_seconds: Int32 = Field(default=1, ge=1, description="Length of such a window.")
    controller_quota_window_num: Int32 = Field(
        default=11,
        ge=1,
        description="Windows of controller.quota.window.size.seconds whose changes of topics a "
        "client may make at once.",
    )
    controller_quota_window_size_seconds: Int32 = Field(
        default=1, ge=1, description="Length of a window in which changes of topics are counted."
    )
    emulator_max_client_quotas: Int32 = Field(
        default=10_000, ge=1, description="How many entities may have quotas. An AlterClientQuotas for more is refused."
    )
    emulator_request_time_ms: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Time that each request counts as taking, for request_percentage. None: as measured, which on a "
        "driven clock is 0.",
    )
    emulator_principals: Annotated[str, AfterValidator(_check_clients)] = Field(
        default="",
        description="Principals of clients that do not log in, by client id, as app=User:alice;billing-*=User:billing; "
        "for others User:ANONYMOUS.",
    )
