"""Options of a node beside Kafka's own settings, and objects that are made from its options alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rejoin.coordinator.config import DEFAULTS, Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.topics.topics import MAX_PARTITIONS
from rejoin.coordinator.service.clock import Clock
from rejoin.coordinator.service.defaults import BODY_SECONDS, HEAD_SECONDS, HOST, MAX_BODY_BYTES, PORT
from rejoin.coordinator.service.driver import Runtime
from rejoin.coordinator.service.security.control_token import check_token
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.coordinator.storage.base import SoleLogs
from rejoin.coordinator.storage.memory import MemoryLog
from rejoin.protocol.brokers.listener_address import addresses_from
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.acls import CreateAclsRequest, CreateAclsResponse
from rejoin.protocol.messages.security.client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rejoin.protocol.registry import ALTER_CLIENT_QUOTAS, CREATE_ACLS, CREATE_TOPICS
from rejoin.protocol.security.acl_bindings import AclBinding
from rejoin.protocol.security.quota_limits import QuotaLimits

if TYPE_CHECKING:
    from rejoin.coordinator.control.control import Control


class StartFailed(Exception):
    """A node that cannot start with its options. The text is for the user."""


@dataclass(frozen=True, slots=True)
class InitialTopic:
    """A topic to create at the start."""

    name: str
    partitions: int
    records_per_second: float | None = None

    def __post_init__(self) -> None:
        """Refuse what does not fit into a request. The rest is answered as Kafka does."""
        if self.partitions > MAX_PARTITIONS:
            raise ValueError(
                f"topic {self.name} with {self.partitions} partitions: expected at most {MAX_PARTITIONS} of them"
            )


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """The control API: who may use it (no token is needed unless there is one), and on which clock the node runs.

    ``clock`` is ``real``, ``virtual`` or ``fast:SPEED``.
    """

    token: str | None = None
    clock: str = "real"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a node beside Kafka's own settings. Port 0 takes a free one; without ``listen`` there is none.

    ``data`` is a directory in which everything is kept over restarts, ``store`` a database that several nodes share;
    without either, ``log`` is the offsets log.
    """

    settings: Settings = DEFAULTS
    host: str = HOST
    port: int = PORT
    advertised_host: str | None = None
    kafka_port: int | None = None
    """The port of Kafka's own protocol, on ``host``; none: no listener, unless the settings name some."""
    journal: Path | None = None
    topics: tuple[InitialTopic, ...] = ()
    acls: tuple[AclBinding, ...] = ()
    quotas: tuple[QuotaLimits, ...] = ()
    max_body_bytes: int = MAX_BODY_BYTES
    head_seconds: float = HEAD_SECONDS
    body_seconds: float = BODY_SECONDS
    clock: Clock | None = None
    log: SoleLogs = field(default_factory=MemoryLog)
    data: Path | None = None
    store: str | None = None
    control: ControlOptions | None = None
    token: str | None = None
    """Without the control API: the token that is needed to resign a partition."""
    listen: bool = True


def security_of(options: Options) -> ListenerSecurity:
    """Protection of the listeners. A certificate that is made is valid for all names that clients know."""
    advertised = [each.host for each in addresses_from(options.settings.advertised_listeners)]
    names = [options.host, options.advertised_host or "", *advertised]
    try:
        return ListenerSecurity(options.settings, tuple(names))
    except ValueError as problem:
        raise StartFailed(str(problem)) from None


def check_control(options: Options) -> None:
    """The control API can do anything to the node, so beyond this machine it needs a token."""
    is_served = options.control is not None and options.listen
    try:
        check_token(token_of(options), options.host, is_served=is_served)
    except ValueError as problem:
        raise StartFailed(str(problem)) from None


def control_of(options: Options, security: ListenerSecurity, *, is_durable: bool, topics_logged: bool) -> Control:
    """The control API on the clock that the options name."""
    assert options.control is not None, "there is a control to make"
    if options.store is not None and options.control.clock != "real":
        raise StartFailed(f"--clock {options.control.clock}: expected real with --store, whose leases run in real time")
    # Imported here: most nodes start without the control API.
    from rejoin.coordinator.control.clocks import clock_named  # noqa: PLC0415
    from rejoin.coordinator.control.control import Control  # noqa: PLC0415

    return Control(
        options.settings,
        clock_named(options.control.clock),
        topics_logged=topics_logged,
        is_durable=is_durable,
        file_users=security.file_users(),
    )


def token_of(options: Options) -> str | None:
    """The token that the control API asks for, or none."""
    return options.token if options.control is None else options.control.token


async def create_topic(runtime: Runtime, topic: InitialTopic, *, may_exist: bool) -> None:
    """Create a topic of the options. Raises :class:`StartFailed` where it is refused."""
    rate = topic.records_per_second
    configs = () if rate is None else (CreatableTopicConfig(name="emulator.records.per.second", value=str(rate)),)
    creatable = CreatableTopic(
        name=topic.name, num_partitions=topic.partitions, replication_factor=-1, assignments=(), configs=configs
    )
    request = CreateTopicsRequest(topics=(creatable,))
    context = Context(api_version=CREATE_TOPICS.max_version, by_operator=True)
    answer = await runtime.submit(request, context).answer()
    assert isinstance(answer, CreateTopicsResponse)
    result = answer.topics[0]
    if result.error_code is ErrorCode.TOPIC_ALREADY_EXISTS and may_exist:
        return
    if result.error_code is not ErrorCode.NONE:
        raise StartFailed(f"topic {topic.name}: {result.error_code.name}: {result.error_message or 'refused'}")


async def set_access(runtime: Runtime, options: Options) -> None:
    """Create the ACLs and set the quotas of the options. Raises :class:`StartFailed` where one is refused."""
    if options.acls:
        creation = CreateAclsRequest(creations=tuple(acl.creation() for acl in options.acls))
        made = await runtime.submit(creation, Context(CREATE_ACLS.max_version, by_operator=True)).answer()
        assert isinstance(made, CreateAclsResponse)
        for acl, result in zip(options.acls, made.results, strict=True):
            if result.error_code is not ErrorCode.NONE:
                raise StartFailed(f"acls: {acl}: {result.error_code.name}: {result.error_message or 'refused'}")
    if options.quotas:
        entries = tuple(each.alteration() for each in options.quotas)
        alteration = AlterClientQuotasRequest(entries=entries, validate_only=False)
        done = await runtime.submit(alteration, Context(ALTER_CLIENT_QUOTAS.max_version, by_operator=True)).answer()
        assert isinstance(done, AlterClientQuotasResponse)
        for quota, altered in zip(options.quotas, done.entries, strict=True):
            if altered.error_code is not ErrorCode.NONE:
                raise StartFailed(f"quotas: {quota}: {altered.error_code.name}: {altered.error_message or 'refused'}")
