"""Requests about the settings of brokers: every operation, and every error of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.cluster.replica_probes import NO_RIGHTS
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, Step
from rejoin.coordinator.core.topics.broker_configs import broker_configs
from rejoin.coordinator.core.topics.configs import ConfigType

_TOPIC, _BROKER = 2, 4
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
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
    yield from ((ADMIN, probe) for probe in _every_setting())
    yield from ((ADMIN, probe) for probe in _removed())
    yield NO_RIGHTS, _alter(1, _BROKER, "1", ("max.connections", _SET, "500"))
    yield NO_RIGHTS, _describe(4, _BROKER, "1")


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
        yield _replace(version, _BROKER, "1", {})
        yield from _looks()


_NUMBERS: Final = (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE, ConfigType.SHORT)
_FIXED: Final = ("broker.rack", "num.partitions", "auto.create.topics.enable", "default.replication.factor")
"""Some settings that no running broker changes."""


def _every_setting() -> Iterator[Probe]:
    """Each setting with its default, and numbers that are too small and too large; nothing is changed."""
    for name, (kind, read_only, default) in broker_configs().items():
        if read_only and name not in _FIXED:
            continue
        values = [default or "1"]
        values += ["-9", "9223372036854775807"] if kind in _NUMBERS else ["", "x"]
        for broker in ("1", ""):
            for value in values:
                yield _alter(1, _BROKER, broker, (name, _SET, value), validate=True)


def _removed() -> Iterator[Probe]:
    """Names that are unknown, settings that a cluster needs, and what may not be taken back."""
    yield _alter(1, _BROKER, "1", ("no.such.setting", _SET, "5"), ("log.roll.ms", _SET, "3600000"))
    yield _describe(4, _BROKER, "1", (*SHOWN, "no.such.setting", "log.roll.ms", "ssl.key.password"))
    yield _describe(4, _BROKER, "", None)
    yield _describe(4, _TOPIC, "pay", (*OF_TOPIC, "segment.ms"))
    yield _alter(1, _BROKER, "1", ("no.such.setting", _DELETE, None), ("log.roll.ms", _DELETE, None))
    for broker in ("1", ""):
        yield _alter(1, _BROKER, broker, ("broker.id", _DELETE, None))
        yield _alter(1, _BROKER, broker, ("", _DELETE, None))
        yield _alter(1, _BROKER, broker, ("broker.id", _SET, "7"), ("max.connections", _SET, "x"))
        yield _alter(1, _BROKER, broker, ("broker.id", _SET, "7"), ("node.id", _SET, "7"))
        yield _alter(1, _BROKER, broker, ("no.such.setting", _APPEND, "7"))
        yield _alter(1, _BROKER, broker, ("log.cleanup.policy", _APPEND, "shred"))
        yield _alter(1, _BROKER, broker, ("log.cleanup.policy", _SET, ""))
        yield from _looks()
        yield _alter(1, _BROKER, broker, ("log.cleanup.policy", _APPEND, "compact"))
        yield from _looks()
        yield _alter(1, _BROKER, broker, ("log.cleanup.policy", _DELETE, None))
        yield _alter(1, _BROKER, broker, ("min.insync.replicas", _SET, "2"))
        yield from _looks()
        yield _alter(1, _BROKER, broker, ("min.insync.replicas", _SET, "1"))
        yield _alter(1, _BROKER, broker, ("min.insync.replicas", _DELETE, None))
    for version in (0, 1):
        yield _alter(version, _BROKER, "9", ("broker.id", _SET, "7"))
        yield _alter(version, _BROKER, "", ("max.connections", _SET, None), ("max.connections", _SET, "1"))
