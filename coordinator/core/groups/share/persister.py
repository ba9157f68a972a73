"""The coordinators of share-partitions, as the group coordinator asks them. Kafka: Persister."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from rejoin.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rejoin.protocol.messages.share.share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
    )

OnInitialized: TypeAlias = "Callable[[InitializeShareGroupStateResponse], None]"
OnStateDeleted: TypeAlias = "Callable[[DeleteShareGroupStateResponse], None]"


class SharePersister(Protocol):
    """Sends requests to the coordinators of share-partitions. Each is answered once, at once or in a later step.

    A request may be about partitions of several coordinators: the answer has a result for each partition. An answer
    that comes when the group's shard has moved on to another node does nothing.
    """

    def initialize(self, request: InitializeShareGroupStateRequest, on_answer: OnInitialized) -> None:
        """Have the state of share-partitions made, or made anew."""

    def delete(self, request: DeleteShareGroupStateRequest, on_answer: OnStateDeleted) -> None:
        """Have the state of share-partitions deleted."""


class LazyPersister:
    """A persister that is made with the first request for it."""

    def __init__(self, make: Callable[[], SharePersister]) -> None:
        self._make = make

    def initialize(self, request: InitializeShareGroupStateRequest, on_answer: OnInitialized) -> None:
        self._make().initialize(request, on_answer)

    def delete(self, request: DeleteShareGroupStateRequest, on_answer: OnStateDeleted) -> None:
        self._make().delete(request, on_answer)


class NoPersister:
    """A node without share coordinators: nothing can be initialised or deleted."""

    def initialize(self, request: InitializeShareGroupStateRequest, on_answer: OnInitialized) -> None:
        response = request.error_response(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        on_answer(cast("InitializeShareGroupStateResponse", response))

    def delete(self, request: DeleteShareGroupStateRequest, on_answer: OnStateDeleted) -> None:
        response = request.error_response(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        on_answer(cast("DeleteShareGroupStateResponse", response))
