"""UpdateFeatures (key 57): change the levels of features that the cluster has agreed on (KIP-584).

v1 adds the kind of upgrade and requests that are only validated; v2 has no result for each feature.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int8, Int16, Int32

UPGRADE = 1


class FeatureUpdateKey(Struct):
    """A feature and its new level; 0 removes it. Upgrade type 1 only upgrades, 2 and 3 only downgrade."""

    feature: str
    max_version_level: Int16
    allow_downgrade: Annotated[bool, In(0, 0)] = False
    upgrade_type: Annotated[Int8, In(1)] = UPGRADE


class UpdateFeaturesRequest(Request):
    """Change levels: all that are named, or none."""

    timeout_ms: Int32 = 60_000
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: Annotated[bool, In(1)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return UpdateFeaturesResponse(error_code=error, error_message=error.name)


class UpdatableFeatureResult(Struct):
    """The result for one feature."""

    feature: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class UpdateFeaturesResponse(Response):
    """Whether the levels are changed."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: Annotated[tuple[UpdatableFeatureResult, ...], In(0, 1)] = ()
