"""Levels of features: the first ones are those of the settings, UpdateFeatures changes them for good."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.inputs import TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.cluster.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.coordinator.core.driver import DrivenNode

UPGRADE, SAFE_DOWNGRADE = 1, 2
TRANSACTIONS, GROUPS, SHARING = "transaction.version", "group.version", "share.version"
STREAMS = "streams.version"


def update(driven: DrivenNode, feature: str, level: int, upgrade_type: int = SAFE_DOWNGRADE) -> UpdateFeaturesResponse:
    wanted = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    answer = driven.ask(UpdateFeaturesRequest(feature_updates=(wanted,)), 2)
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer


def levels(driven: DrivenNode) -> dict[str, int]:
    answer = driven.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    return {feature.name: feature.max_version_level for feature in answer.finalized_features}


def restart(driven: DrivenNode) -> None:
    records = driven.node.topics_records()
    driven.node = Node(driven.node.settings, driven._new_id)
    driven.see_cluster()
    driven.step(TopicsChanged(((1, records),), 1))


def test_a_level_stays_over_a_restart() -> None:
    driven = DrivenNode()
    assert levels(driven) == {TRANSACTIONS: 2, GROUPS: 1, SHARING: 2, STREAMS: 1}
    assert update(driven, SHARING, 1).error_code is ErrorCode.NONE
    assert levels(driven)[SHARING] == 1
    assert update(driven, SHARING, 0).error_code is ErrorCode.NONE
    assert update(driven, TRANSACTIONS, 1).error_code is ErrorCode.NONE
    assert update(driven, GROUPS, 0).error_code is ErrorCode.NONE
    assert update(driven, STREAMS, 0).error_code is ErrorCode.NONE
    assert levels(driven) == {TRANSACTIONS: 1}
    restart(driven)
    assert levels(driven) == {TRANSACTIONS: 1}
    assert update(driven, TRANSACTIONS, 2, UPGRADE).error_code is ErrorCode.NONE
    assert levels(driven) == {TRANSACTIONS: 2}


def test_the_settings_say_the_first_level() -> None:
    driven = DrivenNode(emulator_transaction_version=0)
    assert levels(driven) == {GROUPS: 1, SHARING: 2, STREAMS: 1}
    assert update(driven, TRANSACTIONS, 1, UPGRADE).error_code is ErrorCode.NONE
    assert levels(driven) == {GROUPS: 1, TRANSACTIONS: 1, SHARING: 2, STREAMS: 1}


def test_an_older_release_has_no_such_features() -> None:
    driven = DrivenNode(emulator_as_kafka="3.0")
    assert levels(driven) == {}
    refused = update(driven, TRANSACTIONS, 1, UPGRADE)
    assert refused.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert "does not support the feature" in (refused.error_message or "")


def test_a_refusal_says_what_may_be_asked_for() -> None:
    driven = DrivenNode()
    assert update(driven, TRANSACTIONS, 3, UPGRADE).error_message == (
        "The update failed for all features: Invalid update version 3 for feature transaction.version. "
        "This node only supports versions 0-2."
    )


def test_a_client_that_may_not_alter_the_cluster_changes_nothing() -> None:
    driven = DrivenNode(emulator_deny=("User:*:ALTER:cluster=kafka-cluster",))
    assert update(driven, TRANSACTIONS, 1).error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert levels(driven) == {TRANSACTIONS: 2, GROUPS: 1, SHARING: 2, STREAMS: 1}


@pytest.mark.parametrize(("release", "first", "newest"), [("4.1", 0, 1), ("4.2", 1, 1), ("4.3", 1, 1), ("4.4", 2, 2)])
def test_share_groups_have_the_level_of_the_release(release: str, first: int, newest: int) -> None:
    """4.1 has them as a preview that is off; dead letters came with 4.4."""
    driven = DrivenNode(emulator_as_kafka=release)
    assert levels(driven).get(SHARING, 0) == first
    assert update(driven, SHARING, newest + 1, UPGRADE).error_code is ErrorCode.INVALID_UPDATE_VERSION
    update(driven, SHARING, newest, UPGRADE)
    assert levels(driven)[SHARING] == newest
