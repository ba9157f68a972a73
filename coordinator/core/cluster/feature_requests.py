"""UpdateFeatures: changes the levels of features.

Kafka: FeatureControlManager.updateFeatures.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rejoin.coordinator.core.cluster.features import ClusterFeatures, feature_records
from rejoin.coordinator.core.inputs import Context, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

LAST_WITH_RESULTS: Final = 1


class UpgradeType(IntEnum):
    """Direction in which a level may change. Kafka: FeatureUpdate.UpgradeType."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureRequests:
    """Changes the levels of features."""

    def __init__(self, ctx: StepContext, changes: TopicChanges, admission: Admission) -> None:
        self._ctx = ctx
        self._changes = changes
        self._admission = admission

    def update_features(self, token: Token, request: UpdateFeaturesRequest, context: Context) -> None:
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error))
        else:
            self._changes.make(_FeatureUpdate(self._ctx, token, request))


class _FeatureUpdate(TopicChange):
    """Levels that a request wants changed. It is answered when they are stored."""

    def __init__(self, ctx: StepContext, token: Token, request: UpdateFeaturesRequest) -> None:
        self._ctx = ctx
        self._token = token
        self._request = request
        self._problem: str | None = None

    def decide(self) -> TopicsRecords:
        features, levels = self._ctx.features, {}
        self._problem = None
        for update in self._request.feature_updates:
            problem = update_problem(features, update)
            if problem is not None:
                wanted = f"Invalid update version {update.max_version_level} for feature {update.feature[:200]}"
                self._problem = f"The update failed for all features: {wanted}. {problem}"
                return ()
            levels[update.feature] = update.max_version_level
        changed = {name: level for name, level in levels.items() if level != features.level(name)}
        return () if self._request.validate_only else feature_records(changed.items())

    def ended(self, error: ErrorCode) -> None:
        message = None if error is ErrorCode.NONE else error.name
        if self._problem is not None:
            error, message = ErrorCode.INVALID_UPDATE_VERSION, self._problem
        done = self._request.feature_updates if error is ErrorCode.NONE else ()
        # Kafka: UpdateFeaturesResponse. Versions below 2 name the features that were changed; a refusal names none.
        results = tuple(
            [UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name) for update in done]
        )
        response = UpdateFeaturesResponse(error_code=error, error_message=message, results=results)
        self._ctx.reply(self._token, response)


def update_problem(features: ClusterFeatures, update: FeatureUpdateKey) -> str | None:
    """Why a level cannot be changed, or none."""
    name, level = update.feature, update.max_version_level
    newest, current = features.supported.get(name), features.level(name)
    # Kafka: version 0 of the request is an upgrade, whatever its allowDowngrade says.
    kind = update.upgrade_type
    if kind not in _UPGRADE_TYPES:
        return f"Upgrade type {kind}: expected 1 (upgrade), 2 (safe downgrade) or 3 (unsafe downgrade)."
    if level < 0:
        return "A feature version cannot be less than 0."
    if newest is None:
        return "This node does not support the feature."
    if level > newest:
        return f"This node only supports versions 0-{newest}."
    if level < current and kind == UpgradeType.UPGRADE:
        return "A downgrade needs the upgrade type 2 or 3."
    if level > current and kind != UpgradeType.UPGRADE:
        return "A downgrade cannot lead to a newer version."
    return None


_UPGRADE_TYPES: Final = frozenset(UpgradeType)
