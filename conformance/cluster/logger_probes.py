"""Requests about the levels of a broker's loggers: every operation, and every error of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.cluster.replica_probes import NO_RIGHTS
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, Step

_LOGGER: Final = 8
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
LOGGER: Final = "kafka.server.KafkaApis"
_DESCRIBED: Final = (LOGGER, "root", "no.such.logger")


def logger_steps() -> Iterator[Step]:
    """All steps, in order."""
    for version in (0, 1, 2):
        resource = {"resourceType": _LOGGER, "resourceName": "1", "configs": [{"name": LOGGER, "value": "DEBUG"}]}
        yield ADMIN, Probe("AlterConfigs", version, {"resources": [resource], "validateOnly": False})
    for version in (0, 1):
        yield from ((ADMIN, probe) for probe in _changes(version))
    yield NO_RIGHTS, _alter(1, "1", (LOGGER, _SET, "DEBUG"))
    yield NO_RIGHTS, _describe(4, "1")


def _alter(version: int, name: str, *levels: tuple[str, int, str | None], validate: bool = False) -> Probe:
    configs = [{"name": logger, "configOperation": how, "value": value} for logger, how, value in levels]
    resource = {"resourceType": _LOGGER, "resourceName": name, "configs": configs}
    return Probe("IncrementalAlterConfigs", version, {"resources": [resource], "validateOnly": validate})


def _describe(version: int, name: str) -> Probe:
    resource: dict[str, Any] = {"resourceType": _LOGGER, "resourceName": name, "configurationKeys": list(_DESCRIBED)}
    return Probe("DescribeConfigs", version, {"resources": [resource], "includeSynonyms": True})


def _changes(version: int) -> Iterator[Probe]:
    for level in ("DEBUG", "debug", "FATAL", "TRACE", "OFF", "ALL", "LOUD", "", None):
        yield _alter(version, "1", (LOGGER, _SET, level))
        yield _describe(4, "1")
    for name in ("1", "", "9", "x"):
        yield _alter(version, name, (LOGGER, _SET, "WARN"), validate=True)
        yield _describe(4, name)
    for change in (
        ("root", _SET, "INFO"),
        ("root", _DELETE, None),
        ("no.such.logger", _SET, "INFO"),
        ("no.such.logger", _DELETE, None),
        (LOGGER, _APPEND, "INFO"),
        (LOGGER, _SUBTRACT, "INFO"),
        (LOGGER, 9, "INFO"),
        (LOGGER, _DELETE, None),
    ):
        yield _alter(version, "1", change)
    yield _alter(version, "1", (LOGGER, _SET, "INFO"), (LOGGER, _SET, "WARN"))
    yield _alter(version, "1", (LOGGER, _SET, "ERROR"), ("no.such.logger", _SET, "WARN"))
    yield _describe(1, "1")
