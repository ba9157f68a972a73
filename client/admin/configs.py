"""Settings of topics and brokers from outside: single ones are set and removed (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from rejoin.client.admin.asking import AdminConnection, Outcomes
from rejoin.client.core.effects import Endpoint
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementallyAlterableConfig,
)

_SET, _DELETE = range(2)
_TOPIC: Final = 2
_BROKER: Final = 4


class ConfigResource(NamedTuple):
    """A topic, or a broker by its id, with Kafka's number for its type."""

    type: int
    name: str

    @classmethod
    def topic(cls, name: str) -> Self:
        """The topic of this name."""
        return cls(_TOPIC, name)

    @classmethod
    def broker(cls, number: int) -> Self:
        """The broker with this id."""
        return cls(_BROKER, str(number))


class ConfigCalls(AdminConnection):
    """The calls of an admin client about settings."""

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]], nodes: Mapping[str, Endpoint]
    ) -> Outcomes[ConfigResource]:
        """Set single settings, or remove them (None); the outcome of each resource.

        A broker among ``nodes`` is asked about its own settings, and any broker about the others.
        """
        found: dict[ConfigResource, tuple[ErrorCode, str | None]] = {}
        by_node: dict[Endpoint | None, list[ConfigResource]] = {}
        for resource in changes:
            to = nodes.get(resource.name) if resource.type == _BROKER else None
            by_node.setdefault(to, []).append(resource)
        for to, resources in by_node.items():
            request = IncrementalAlterConfigsRequest(
                resources=tuple(_altered(resource, changes[resource]) for resource in resources), validate_only=False
            )
            response = await self._ask(request, IncrementalAlterConfigsResponse, to=to)
            for each in response.responses:
                resource = ConfigResource(each.resource_type, each.resource_name)
                found[resource] = (each.error_code, each.error_message)
        return Outcomes.of(found)


def _altered(resource: ConfigResource, values: Mapping[str, str | None]) -> IncrementalAlterConfigsResource:
    return IncrementalAlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=tuple(
            IncrementallyAlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
            for name, value in values.items()
        ),
    )
