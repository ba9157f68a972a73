"""The loggers of a broker, whose levels IncrementalAlterConfigs changes and DescribeConfigs lists.

A level is validated and remembered until the node stops. Differs: it changes nothing of what this node logs, whose
loggers are not Kafka's.

Kafka: LoggingController, ConfigAdminManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rejoin.coordinator.core.topics.config_entries import ConfigEntry
from rejoin.coordinator.core.topics.configs import ConfigSource, ConfigType
from rejoin.coordinator.core.topics.names import TopicError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.alter_configs import IncrementallyAlterableConfig

ROOT: Final = "root"
LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
NAMES: Final = (
    "kafka",
    "kafka.controller",
    "kafka.coordinator.group",
    "kafka.coordinator.transaction",
    "kafka.coordinator.transaction.TransactionCoordinator",
    "kafka.log.LogManager",
    "kafka.network.RequestChannel$",
    "kafka.network.SocketServer",
    "kafka.request.logger",
    "kafka.server.BrokerServer",
    "kafka.server.ControllerServer",
    "kafka.server.KafkaApis",
    "kafka.server.KafkaConfig",
    "kafka.server.KafkaRaftServer",
    "kafka.server.KafkaRequestHandler",
    "kafka.server.ReplicaManager",
    "org.apache.kafka",
    "org.apache.kafka.clients.NetworkClient",
    "org.apache.kafka.common.network.Selector",
    "org.apache.kafka.controller.QuorumController",
    "org.apache.kafka.coordinator.group.GroupCoordinatorService",
    "org.apache.kafka.coordinator.group.GroupMetadataManager",
    "org.apache.kafka.raft.KafkaRaftClient",
    ROOT,
)
"""Loggers that clients may name: some of the many that a broker of Kafka has."""
_OPERATIONS: Final = ("SET", "DELETE", "APPEND", "SUBTRACT")
_SET, _DELETE = 0, 1
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class BrokerLoggers:
    """Levels by logger. A logger without a level of its own has that of the root."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._levels = {ROOT: "INFO"}

    def entries(self) -> tuple[ConfigEntry, ...]:
        """All loggers with their levels."""
        root, source = self._levels[ROOT], ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
        levels = ((name, self._levels.get(name, root)) for name in NAMES)
        return tuple(ConfigEntry(name, level, source, ConfigType.UNKNOWN, False, ()) for name, level in levels)

    def alter(self, broker: str, changes: Sequence[IncrementallyAlterableConfig], *, validate_only: bool) -> None:
        """Change levels, all or none. Raises :class:`TopicError` for the first change that is wrong."""
        self._check_broker(broker)
        for change in changes:
            _check(change)
        if not validate_only:
            self._apply(changes)

    def _apply(self, changes: Iterable[IncrementallyAlterableConfig]) -> None:
        for change in changes:
            if change.config_operation == _DELETE or change.value is None:
                self._levels.pop(change.name, None)
            else:
                self._levels[change.name] = change.value

    def _check_broker(self, name: str) -> None:
        digits = name[1:] if name[:1] in {"+", "-"} else name
        number = int(name) if digits.isdecimal() and len(digits) <= len(str(_HIGHEST)) else _HIGHEST + 1
        if not _LOWEST <= number <= _HIGHEST:
            raise TopicError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name[:100]}")
        if number != self._broker_id:
            text = f"Unexpected node id. Expected {self._broker_id}, but received {number}"
            raise TopicError(ErrorCode.INVALID_REQUEST, text)


def _check(change: IncrementallyAlterableConfig) -> None:
    name, operation = change.name, change.config_operation
    if operation not in {_SET, _DELETE}:
        known = 0 <= operation < len(_OPERATIONS)
        shown = f"{_OPERATIONS[operation]} operation" if known else f"Unknown operation type {operation}"
        text = f"{shown} is not allowed for the BROKER_LOGGER resource"
        raise TopicError(ErrorCode.INVALID_REQUEST, text)
    if name not in NAMES:
        raise TopicError(ErrorCode.INVALID_CONFIG, f"Logger {name[:100]} does not exist!")
    if operation == _DELETE and name == ROOT:
        text = "Removing the log level of the root logger is not allowed"
        raise TopicError(ErrorCode.INVALID_REQUEST, text)
    if operation == _SET and change.value not in LEVELS:
        text = (
            f"Cannot set the log level of {name} to {(change.value or '')[:100]} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}"
        )
        raise TopicError(ErrorCode.INVALID_CONFIG, text)
