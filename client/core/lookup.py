"""Who is the coordinator: asked when somebody needs to know, forgotten when it turns out to be wrong.

Source: Kafka's AbstractCoordinator.ensureCoordinatorReady, FindCoordinatorResponseHandler, markCoordinatorUnknown.
"""

from __future__ import annotations

from collections.abc import Callable

from rejoin.client.core import requests
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import (
    CodedError,
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    KafkaError,
    UnexpectedError,
)
from rejoin.client.core.heartbeat import Heartbeat
from rejoin.client.core.inputs import Millis
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.step_context import InFlight, StepContext
from rejoin.journal.events.client import CoordinatorFound, CoordinatorLost, CoordinatorNotFound
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.registry import FIND_COORDINATOR


class Lookup:
    """The coordinator, once it is known. At most one FindCoordinator is in flight."""

    def __init__(self, ctx: StepContext, heartbeat: Heartbeat) -> None:
        self.coordinator: Endpoint | None = None
        self._ctx = ctx
        self._heartbeat = heartbeat
        self._request: int | None = None
        self._attempts = 0
        self._retry_at: Millis = 0
        self._fatal: KafkaError | None = None
        self._waiting: list[Callable[[KafkaError | None], None]] = []

    def ensure(self) -> bool:
        """True when the coordinator is known; otherwise somebody is being asked, or will be after a backoff."""
        if self.coordinator is not None:
            return True
        if self._request is None:
            if self._ctx.now < self._retry_at:
                self._ctx.wake(self._retry_at)
            else:
                self._ask()
        return False

    def ensure_for_user(self) -> bool:
        """As :meth:`ensure`, in a call of the user's: raises what made the last attempt fail for good."""
        if self.coordinator is None and self._fatal is not None:
            fatal, self._fatal = self._fatal, None
            raise fatal
        return self.ensure()

    def when_known(self, then: Callable[[KafkaError | None], None]) -> None:
        """Look the coordinator up once and say how that ended: no second attempt is made for this caller."""
        self._waiting.append(then)
        self.ensure()

    @property
    def awaited(self) -> bool:
        """True while somebody waits for one lookup."""
        return bool(self._waiting)

    def forget(self, cause: str) -> None:
        """The coordinator is somebody else, or gone: drop what waits for it."""
        if self.coordinator is None:
            return
        self.coordinator = None
        self._attempts = 0
        self._retry_at = 0
        self._ctx.effects.append(CoordinatorLost(cause=cause, **self._ctx.who))
        self._ctx.drop_requests_to_coordinator()

    def _ask(self) -> None:
        group_id = self._ctx.config.group_id
        assert group_id is not None, "a consumer without a group has no coordinator"
        request = requests.find_coordinator(group_id, self._ctx.version(FIND_COORDINATOR))
        self._request = self._ctx.send(request, self._answered, self._failed)

    def _answered(self, sent: InFlight, response: Response) -> None:
        assert isinstance(response, FindCoordinatorResponse)
        group_id = self._ctx.config.group_id or ""
        found = requests.coordinator_found(response, group_id, self._ctx.version(FIND_COORDINATOR))
        if found.error_code is not ErrorCode.NONE:
            self._failed(sent, self._problem(found.error_code))
            return
        self._request = None
        self._attempts = 0
        self._fatal = None
        self.coordinator = Endpoint(found.node_id, found.host, found.port)
        self._heartbeat.restart_session(self._ctx.now)
        self._ctx.effects.append(
            CoordinatorFound(node_id=found.node_id, host=found.host, port=found.port, **self._ctx.who)
        )
        self._tell(None)

    def _problem(self, error: ErrorCode) -> KafkaError:
        if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return GroupAuthorizationError(f"not authorized for group {self._ctx.config.group_id}")
        match reaction("FindCoordinator", error):
            case Reaction.BACK_OFF | Reaction.RAISE:
                return CodedError(error)
            case _:
                return UnexpectedError("FindCoordinator", error)

    def _failed(self, sent: InFlight, problem: KafkaError) -> None:
        self._request = None
        if not problem.retriable:
            # Kafka: fatalFindCoordinatorException, so that the user's thread learns it whoever asked.
            self._fatal = problem
        self._retry_at = self._ctx.now + self._ctx.backoff(self._attempts)
        self._attempts += 1
        if self._attempts & (self._attempts - 1) == 0:
            self._ctx.effects.append(
                CoordinatorNotFound(attempts=self._attempts, problem=str(problem), **self._ctx.who)
            )
        self._tell(problem)

    def _tell(self, problem: KafkaError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then(problem)

    def not_available(self) -> CoordinatorNotAvailableError:
        """What a request meets while nobody knows the coordinator."""
        return CoordinatorNotAvailableError("the coordinator is not known")
