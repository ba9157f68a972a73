"""One version of an API for every transport: where its error stands, how it fails, and how it is logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.logs import LoggedReasons
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import fields_of
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import Api

if TYPE_CHECKING:
    from rejoin.coordinator.service.refusals.error_codes import Refusals
    from rejoin.protocol.wire.errors import ResponseTooLarge

NO_ERROR: Final = ErrorCode.NONE.name
_ONLY_ERROR: Final = {"throttle_time_ms", "error_code"}
_NAMES: Final = {error: error.name for error in ErrorCode}
"""A name of an enum's member is computed at each look."""


class ServedVersion:
    """One version of an API. ``is_only_error``: its response is nothing but an error code.

    ``count_errors`` is an :data:`~rejoin.coordinator.service.refusals.error_codes.ErrorCounter`. It is for responses
    that have another ``error_of`` than ``NONE``; and for all, where ``has_nested_errors``.
    """

    __slots__ = ("_has_error", "api", "count_errors", "has_nested_errors", "is_only_error", "version")

    def __init__(self, api: Api, version: int) -> None:
        # Imported here: a node starts without.
        from rejoin.coordinator.service.refusals.error_codes import error_counter, has_nested_errors  # noqa: PLC0415
        from rejoin.coordinator.service.refusals.refused_requests import refusals_of  # noqa: PLC0415

        self.api = api
        self.version = version
        fields = {field.name: field for field in fields_of(api.response)}
        error_code = fields.get("error_code")
        self._has_error = error_code is not None and error_code.versions.carries(version)
        self.is_only_error = fields.keys() == _ONLY_ERROR
        self.has_nested_errors = has_nested_errors(api.response, version)
        self.count_errors = error_counter(api.response, version, refusals_of(api))

    def error_of(self, response: Any) -> str:
        """The name of the error of a whole response; "" where this version has none."""
        error: ErrorCode | None = response.error_code if self._has_error else None
        return "" if error is None else _NAMES[error]

    def bare_error(self, response: Any) -> ErrorCode | None:
        """The error of a response that says nothing else, and so is always written alike; none for all others."""
        return response.error_code if self.is_only_error and not response.throttle_time_ms else None

    def failure(self) -> Response | None:
        """The response to a request that broke the core; none where this API has no place for it."""
        if not self._has_error:
            return None
        return self.api.response.model_validate({"error_code": ErrorCode.UNKNOWN_SERVER_ERROR})

    def too_large(self, request: Request) -> Response:
        """The response in place of one that is larger than responses may be."""
        # Kafka: KafkaApis.handle, where a response cannot be written: beyond 2 GiB.
        return request.error_response(self.version, ErrorCode.UNKNOWN_SERVER_ERROR)

    def log_too_large(
        self, logger: Any, logged: LoggedReasons, software: str, context: Context, problem: ResponseTooLarge
    ) -> None:
        """Say once for each client that a response was too large; ``software`` is empty if it is not known."""
        from rejoin.coordinator.service.refusals.refused_requests import log_too_large  # noqa: PLC0415

        log_too_large(logger, logged, self.api, software, context, problem)

    def log(self, logger: Any, client_id: str, error: str, millis: float) -> None:
        """One line for a request, at debug level."""
        logger.debug(
            self.api.path.removeprefix("/v1/").replace("-", "_"),
            version=self.version,
            client_id=client_id,
            error=error or None,
            took_ms=round(millis, 3),
        )

    def log_refusals(
        self,
        logger: Any,
        logged: LoggedReasons,
        software: str,
        context: Context,
        request: Request,
        refusals: Refusals,
    ) -> None:
        """Say once for each client and error that a request was refused; ``software`` is empty if it is not known."""
        from rejoin.coordinator.service.refusals.refused_requests import log_refusals  # noqa: PLC0415

        log_refusals(logger, logged, self.api, software, context, request, refusals)
