"""Start the coordinator of a test, and stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import structlog
from pydantic import ValidationError

from rejoin.coordinator.client_settings import unknown_setting
from rejoin.coordinator.config import Settings
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, InitialTopic, Options, StartFailed
from rejoin.coordinator.storage.memory import MemoryLog
from rejoin.coordinator.testing.access.arguments import read_acls, read_quotas, with_access
from rejoin.coordinator.testing.arguments import check_type
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.protocol.security.acl_bindings import AclBinding
from rejoin.protocol.security.quota_limits import QuotaLimits
from rejoin.protocol.validation import sentence

if TYPE_CHECKING:
    from rejoin.proxy.control.in_process import ProxiedCluster

_HIGHEST_PORT: Final = 65_535


@asynccontextmanager
async def running(
    *,
    clock: Literal["real", "virtual"] | str = "real",
    topics: Mapping[str, int] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    socket: bool = True,
    port: int = 0,
    brokers: int = 1,
    principals: Mapping[str, str] | None = None,
    acls: Sequence[str | AclBinding] = (),
    quotas: Sequence[str | QuotaLimits] = (),
    proxy: str | Mapping[str, Any] | None = None,
) -> AsyncIterator[GroupCoordinator]:
    """A coordinator on the running event loop, on a free port unless another is given, with no state on disk.

    ``topics`` maps names to partition counts, and ``settings`` are Kafka's, by their dotted names. With ``brokers``
    there are several, on ports of their own. ``principals`` are those of clients that do not log in, by client id;
    ``acls``, as ``User:alice:READ:topic=orders``, bring Kafka's authorizer with them; ``quotas`` limit entities, as
    ``user=alice producer_byte_rate=1000``. Raises ValueError for arguments that make no sense, and RuntimeError at
    the end if a call was not awaited.

    With ``proxy``, the ``HOST:PORT`` of a real cluster, there is a proxy in front of that cluster in the place of a
    coordinator; methods that need a clock or a state of a coordinator then raise OperationRefused. A mapping has the
    settings of a client, as ``{"bootstrap.servers": "kafka:9093", "security.protocol": "SSL"}``, and ``settings`` are
    then those of the proxy's own listeners: TLS and users.
    """
    check_type("socket", socket, bool)
    check_type("brokers", brokers, int)
    if not structlog.is_configured():
        logs.configure("critical")
    if proxy is not None:
        given: dict[str, Any] = {"clock": clock != "real", "brokers": brokers != 1, "socket": not socket}
        given |= {"topics": topics, "principals": principals, "acls": acls, "quotas": quotas}
        of_listeners = _settings(settings) if settings else None
        app: Any = _proxied(proxy, port, of_listeners, [name for name, value in given.items() if value])
        async with app, _awaited(GroupCoordinator(app, asyncio.get_running_loop(), socket)) as coordinator:
            yield coordinator
        return
    options = Options(
        settings=with_access(_settings(settings or {}), principals, acls),
        port=_port(port),
        kafka_port=0,
        topics=_topics({} if topics is None else topics),
        acls=read_acls(acls),
        quotas=read_quotas(quotas),
        log=MemoryLog(),
        control=ControlOptions(clock=_clock(clock)),
        listen=socket,
    )
    async with AsyncExitStack() as stack:
        try:
            app = App(options) if brokers == 1 else BrokerCluster(options, brokers)
            await stack.enter_async_context(app)
        except StartFailed as problem:
            raise ValueError(str(problem).removeprefix("--")) from None
        async with _awaited(GroupCoordinator(app, asyncio.get_running_loop(), socket)) as coordinator:
            yield coordinator


@asynccontextmanager
async def _awaited(coordinator: GroupCoordinator) -> AsyncIterator[GroupCoordinator]:
    """A coordinator whose calls have all to be awaited."""
    try:
        yield coordinator
    except BaseException as error:
        if forgotten := coordinator.calls.take_forgotten():
            error.add_note(forgotten)
        raise
    if forgotten := coordinator.calls.take_forgotten():
        raise RuntimeError(forgotten)


def _proxied(
    cluster: str | Mapping[str, Any], port: int, settings: Settings | None, given: list[str]
) -> ProxiedCluster:
    # Imported here: most tests have a coordinator of their own.
    from rejoin.proxy.control.in_process import ProxiedCluster  # noqa: PLC0415

    if given:
        raise ValueError(f"proxy: a real cluster has its own; leave out {' and '.join(given)}")
    if not isinstance(cluster, Mapping):
        check_type("proxy", cluster, str)
    try:
        return ProxiedCluster(cluster, _port(port), settings)
    except ValueError as problem:
        raise ValueError(f"proxy: {problem}") from None


def _settings(given: Settings | Mapping[str, Any]) -> Settings:
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"settings: expected values by name, as {{'group.max.size': 3}}, not {given!r}")
    _check_names(given)
    try:
        return Settings.model_validate(dict(given))
    except ValidationError as problem:
        raise ValueError(f"settings: {sentence(problem, Settings, kind='setting')}") from None


def _check_names(given: Mapping[Any, Any]) -> None:
    """Refuse an unknown setting, and one that is given by both of its names."""
    fields = {info.alias: field for field, info in Settings.model_fields.items()}
    found: dict[str, str] = {}
    for name in given:
        dotted = str(name).replace("_", ".")
        if dotted not in fields:
            known = fields if "." in str(name) else fields.values()
            raise ValueError(f"settings: {unknown_setting(str(name), map(str, known))}")
        if dotted in found:
            raise ValueError(f"settings: {dotted} is given twice, as {found[dotted]} and as {name}; leave one out")
        found[dotted] = str(name)


def _clock(clock: str) -> str:
    if not isinstance(clock, str):
        raise ValueError(f"clock: expected real, virtual, or fast:SPEED, as text, not {clock!r}")
    return clock


def _port(port: int) -> int:
    if type(port) is not int or not 0 <= port <= _HIGHEST_PORT:
        raise ValueError(f"port: expected 0 to {_HIGHEST_PORT}, not {port!r}")
    return port


def _topics(given: Mapping[str, int]) -> tuple[InitialTopic, ...]:
    pairs = given.items() if isinstance(given, Mapping) else ((None, None),)
    if not all(isinstance(name, str) and type(count) is int for name, count in pairs):
        raise ValueError(f"topics: expected partition counts by name, as {{'orders': 3}}, not {given!r}")
    return tuple(InitialTopic(name, partitions) for name, partitions in given.items())
