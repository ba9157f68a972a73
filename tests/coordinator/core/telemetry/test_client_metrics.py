"""Subscriptions to metrics of clients are kept with the topics; instances of clients are bounded and forgotten."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.inputs import ConnectionLost, Context, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.telemetry.instances import ClientInstances
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.cluster.list_config_resources import ListConfigResourcesRequest
from rejoin.protocol.messages.cluster.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from rejoin.protocol.registry import TELEMETRY
from tests.coordinator.core.driver import DrivenNode

CLIENT_METRICS = 16
SET, DELETE = 0, 1
CLIENT = f"{'B' * 21}Q"


def alter(driven: DrivenNode, name: str, **settings: str | None) -> ErrorCode:
    """Set settings of a subscription; those without a value are deleted. Dots are underscores."""
    configs = tuple(
        IncrementallyAlterableConfig(
            name=key.replace("_", "."), config_operation=DELETE if value is None else SET, value=value
        )
        for key, value in settings.items()
    )
    resource = IncrementalAlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
    answer = driven.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    found: ErrorCode = answer.responses[0].error_code
    return found


def listed(driven: DrivenNode) -> list[str]:
    """The subscriptions that there are."""
    answer = driven.ask(ListConfigResourcesRequest(), 0)
    return [each.resource_name for each in answer.config_resources]


def subscribed(driven: DrivenNode, client: str = CLIENT, connection: str = "") -> Any:
    """The answer to a client that asks what to push."""
    driven.requests += 1
    context = Context(0, "app", "/10.0.0.1", connection=connection)
    driven.request(driven.requests, GetTelemetrySubscriptionsRequest(client_instance_id=client), context)
    return driven.replies[driven.requests]


def push(driven: DrivenNode, subscription: int, client: str = CLIENT) -> ErrorCode:
    """The answer to a push without metrics."""
    request = PushTelemetryRequest(
        client_instance_id=client, subscription_id=subscription, terminating=False, compression_type=0, metrics=b""
    )
    found: ErrorCode = driven.ask(request, 0).error_code
    return found


def test_subscriptions_are_read_from_the_log_again() -> None:
    driven = DrivenNode()
    assert alter(driven, "slow", interval_ms="60000", metrics="org.apache.kafka.consumer.") is ErrorCode.NONE
    assert alter(driven, "gone", interval_ms="1000") is ErrorCode.NONE
    assert alter(driven, "gone", interval_ms=None) is ErrorCode.NONE
    assert listed(driven) == ["slow"]
    before = subscribed(driven)
    assert (before.push_interval_ms, before.requested_metrics) == (60_000, ("org.apache.kafka.consumer.",))
    records = driven.node.topics_records()
    driven.node = Node(driven.node.settings, driven._new_id)
    driven.see_cluster()
    driven.step(TopicsChanged(((1, records),), 1, whole=True))
    assert listed(driven) == ["slow"]
    assert subscribed(driven) == before
    driven.step(TopicsChanged(((2, ()),), 2, whole=True))
    assert listed(driven) == []
    assert subscribed(driven).requested_metrics == ()


def test_the_number_of_subscriptions_is_bounded() -> None:
    driven = DrivenNode(emulator_max_client_metrics=1)
    assert alter(driven, "one", interval_ms="1000") is ErrorCode.NONE
    assert alter(driven, "two", interval_ms="1000") is ErrorCode.POLICY_VIOLATION
    assert alter(driven, "two", interval_ms=None) is ErrorCode.NONE
    assert alter(driven, "one", interval_ms="2000") is ErrorCode.NONE
    assert listed(driven) == ["one"]


def test_telemetry_is_offered_where_it_is_switched_on() -> None:
    keys = {api.key for api in TELEMETRY}
    for is_on in (False, True):
        answer = DrivenNode(emulator_client_telemetry=is_on).ask(ApiVersionsRequest(), 0)
        offered = [each.api_key for each in answer.api_keys]
        assert keys & set(offered) == (keys if is_on else set())
        assert offered == sorted(offered)


def test_an_instance_is_forgotten_with_its_connection_or_after_three_silent_intervals() -> None:
    driven = DrivenNode()
    alter(driven, "slow", interval_ms="3600000")
    assert subscribed(driven, connection="c").error_code is ErrorCode.NONE
    assert subscribed(driven, connection="c").error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    driven.step(ConnectionLost("c"))
    assert subscribed(driven, connection="d").error_code is ErrorCode.NONE
    # An unknown instance may push at once: it has no time of a last push.
    known = subscribed(driven, f"{'C' * 21}Q").subscription_id
    assert push(driven, known, f"{'C' * 21}Q") is ErrorCode.NONE
    assert push(driven, known, f"{'C' * 21}Q") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    driven.now += 3 * 3_600_000
    assert push(driven, known, f"{'C' * 21}Q") is ErrorCode.NONE


def test_the_number_of_instances_is_bounded() -> None:
    driven = DrivenNode()
    instances = ClientInstances(driven.node._topics, most=2)
    ids = [f"{letter * 21}Q" for letter in "BCD"]
    for number, instance_id in enumerate(ids):
        instances.of(instance_id, Context(0, connection=str(number)), driven.now)
    assert [each in instances for each in ids] == [False, True, True]
    instances.of(ids[1], Context(0, connection="1"), driven.now)
    instances.of(ids[0], Context(0, connection="9"), driven.now)
    assert [each in instances for each in ids] == [True, True, False]
