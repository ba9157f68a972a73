"""Requests about the settings of brokers and the levels of their loggers: every operation, and every error of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.cluster.replica_probes import NO_RIGHTS
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, Step

_TOPIC, _BROKER, _LOGGER = 2, 4, 8
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
LOGGER: Final = "kafka.server.KafkaApis"
SHOWN: Final = (
    "message.max.bytes",
    "log.retention.ms",
    "log.cleanup.policy",
    "compression.type",
    "max.connections",
    "unclean.leader.election.enable",
    "min.insync.replicas",
    "group.consumer.session.timeout.ms",
)
"""Settings of brokers that are described."""
OF_TOPIC: Final = ("max.message.bytes", "retention.ms", "cleanup.policy", "compression.type", "min.insync.replicas")

_GOOD: Final[tuple[tuple[str, int, str | None], ...]] = (
    ("message.max.bytes", _SET, "2000000"),
    ("log.retention.ms", _SET, "3600000"),
    ("log.cleanup.policy", _APPEND, "compact"),
    ("compression.type", _SET, "lz4"),
    ("max.connections", _SET, "500"),
    ("unclean.leader.election.enable", _SET, "true"),
)
_BAD: Final[tuple[tuple[str, int, str | None], ...]] = (
    ("message.max.bytes", _SET, "-1"),
    ("message.max.bytes", _SET, "many"),
    ("message.max.bytes", _SET, None),
    ("message.max.bytes", _SET, ""),
    ("message.max.bytes", _APPEND, "1"),
    ("message.max.bytes", 9, "1"),
    ("log.cleanup.policy", _SET, "shred"),
    ("log.cleanup.policy", _SUBTRACT, "delete"),
    ("compression.type", _SET, "rar"),
    ("unclean.leader.election.enable", _SET, "maybe"),
    ("broker.id", _SET, "7"),
    ("node.id", _SET, "7"),
    ("log.dirs", _SET, "/tmp"),
    ("group.initial.rebalance.delay.ms", _SET, "5"),
    ("offsets.retention.minutes", _SET, "5"),
    ("no.such.setting", _SET, "5"),
    ("listeners", _SET, "PLAINTEXT://:1"),
    ("max.connections", _SET, "-1"),
    ("num.io.threads", _SET, "0"),
    ("num.io.threads", _SET, "100"),
    ("min.insync.replicas", _SET, "0"),
    ("log.retention.ms", _DELETE, None),
    ("no.such.setting", _DELETE, None),
    ("", _SET, "5"),
)


def broker_steps() -> Iterator[Step]:
    """All steps, in order; those that change something are undone."""
    for version, name in ((0, "1"), (1, "")):
        yield from ((ADMIN, probe) for probe in _changes(version, name))
    for name in ("9", "x", "01", "+1", "-1", " 1", "99999999999"):
        for probe in (_alter(1, _BROKER, name, ("max.connections", _SET, "500")), _describe(4, _BROKER, name)):
            yield ADMIN, probe
    yield from ((ADMIN, probe) for probe in _both())
    yield from ((ADMIN, probe) for probe in _legacy())
    yield from ((ADMIN, probe) for probe in _loggers())
    for kind in (_BROKER, _LOGGER):
        setting = (LOGGER, _SET, "DEBUG") if kind == _LOGGER else ("max.connections", _SET, "500")
        yield NO_RIGHTS, _alter(1, kind, "1", setting)
        yield NO_RIGHTS, _describe(4, kind, "1")


def _alter(version: int, kind: int, name: str, *settings: tuple[str, int, str | None], validate: bool = False) -> Probe:
    configs = [{"name": key, "configOperation": how, "value": value} for key, how, value in settings]
    resource = {"resourceType": kind, "resourceName": name, "configs": configs}
    return Probe("IncrementalAlterConfigs", version, {"resources": [resource], "validateOnly": validate})


def _replace(version: int, kind: int, name: str, settings: dict[str, str | None], *, validate: bool = False) -> Probe:
    configs = [{"name": key, "value": value} for key, value in settings.items()]
    resource = {"resourceType": kind, "resourceName": name, "configs": configs}
    return Probe("AlterConfigs", version, {"resources": [resource], "validateOnly": validate})


def _describe(version: int, kind: int, name: str, keys: Any = SHOWN) -> Probe:
    resource = {"resourceType": kind, "resourceName": name, "configurationKeys": keys and list(keys)}
    return Probe("DescribeConfigs", version, {"resources": [resource], "includeSynonyms": True})


def _looks(version: int = 4) -> Iterator[Probe]:
    yield _describe(version, _BROKER, "1")
    yield _describe(version, _BROKER, "", None)
    yield _describe(version, _TOPIC, "pay", OF_TOPIC)


def _changes(version: int, name: str) -> Iterator[Probe]:
    for setting in _GOOD:
        yield _alter(version, _BROKER, name, setting, validate=True)
        yield _alter(version, _BROKER, name, setting)
    yield from _looks()
    for setting in _BAD:
        yield _alter(version, _BROKER, name, setting)
    yield _alter(version, _BROKER, name, _GOOD[0], _GOOD[0])
    yield _alter(version, _BROKER, name, _GOOD[0], _BAD[1])
    yield _alter(version, _BROKER, name)
    yield from _looks(1)
    yield _alter(version, _BROKER, name, *((key, _DELETE, None) for key, _, _ in _GOOD))
    yield from _looks()


def _both() -> Iterator[Probe]:
    """One value for all brokers, and another for this one."""
    yield _alter(1, _BROKER, "", ("message.max.bytes", _SET, "3000000"), ("log.retention.ms", _SET, "1000"))
    yield _alter(1, _BROKER, "1", ("message.max.bytes", _SET, "4000000"))
    yield from _looks()
    yield _alter(1, _BROKER, "1", ("message.max.bytes", _DELETE, None))
    yield from _looks()
    yield _alter(1, _BROKER, "", ("message.max.bytes", _DELETE, None), ("log.retention.ms", _DELETE, None))


def _legacy() -> Iterator[Probe]:
    for version in (0, 1, 2):
        yield _replace(version, _BROKER, "", {"max.connections": "300"})
        yield _replace(version, _BROKER, "1", {"message.max.bytes": "2000000", "max.connections": "400"})
        yield from _looks()
        yield _replace(version, _BROKER, "1", {"max.connections": "300"}, validate=True)
        yield _replace(version, _BROKER, "1", {"max.connections": "300"})
        yield from _looks()
        yield _replace(version, _BROKER, "1", {"broker.id": "7"})
        yield _replace(version, _BROKER, "1", {"max.connections": None})
        yield _replace(version, _BROKER, "9", {"max.connections": "3"})
        yield _replace(version, _LOGGER, "1", {LOGGER: "DEBUG"})
        yield _replace(version, _BROKER, "1", {})
        yield from _looks()


def _loggers() -> Iterator[Probe]:
    keys = (LOGGER, "root", "no.such.logger")
    for version in (0, 1):
        for level in ("DEBUG", "debug", "FATAL", "TRACE", "OFF", "ALL", "LOUD", "", None):
            yield _alter(version, _LOGGER, "1", (LOGGER, _SET, level))
            yield _describe(4, _LOGGER, "1", keys)
        for name in ("1", "", "9", "x"):
            yield _alter(version, _LOGGER, name, (LOGGER, _SET, "WARN"), validate=True)
            yield _describe(4, _LOGGER, name, keys)
        for setting in (
            ("root", _SET, "INFO"),
            ("root", _DELETE, None),
            ("no.such.logger", _SET, "INFO"),
            ("no.such.logger", _DELETE, None),
            (LOGGER, _APPEND, "INFO"),
            (LOGGER, _SUBTRACT, "INFO"),
            (LOGGER, 9, "INFO"),
            (LOGGER, _DELETE, None),
        ):
            yield _alter(version, _LOGGER, "1", setting)
        yield _alter(version, _LOGGER, "1", (LOGGER, _SET, "INFO"), (LOGGER, _SET, "WARN"))
        yield _alter(version, _LOGGER, "1", (LOGGER, _SET, "ERROR"), ("no.such.logger", _SET, "WARN"))
        yield _describe(1, _LOGGER, "1", keys)
