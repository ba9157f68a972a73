"""Evidence of a test: what clients sent, and what happened, as a transcript or in the words of a broker's logs."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.evidence import LogQuery, TranscriptQuery
from rejoin.coordinator.control.sent_requests import RecordedRequest, RequestsQuery
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class EvidenceMethods(ControlledCoordinator):
    """The methods that show what happened."""

    async def mark(self) -> int:
        """The mark of this moment, for ``since``."""
        return await self._ask(lambda control: control.recorder.mark)

    async def requests(
        self, api: str | int | None = None, client_id: str | None = None, since: int = 0
    ) -> list[RecordedRequest]:
        """Requests of clients with their responses: of one API or all, of one client or all.

        Without what the coordinator did by itself: the topics of the start, and what other methods write or remove.
        """
        given: Any = api

        def read(control: Control) -> list[RecordedRequest]:
            return control.evidence.requests(RequestsQuery(api=given, client_id=client_id, since=since))

        return await self._ask(read)

    async def transcript(self, since: int = 0, group: str | None = None, claim: str = "") -> str:
        """All that happened, as a transcript that can be replayed."""

        def write(control: Control) -> str:
            wanted = TranscriptQuery(since=since, group=group, claim=claim)
            return control.evidence.transcript(wanted.since, wanted.group, wanted.claim)

        return await self._ask(write)

    async def broker_log(self, kafka: str = "3.9", since: int = 0, group: str | None = None) -> str:
        """All that happened, as lines of a broker's server.log of that Kafka version."""

        def write(control: Control) -> str:
            wanted = LogQuery(kafka=kafka, since=since, group=group)
            return control.evidence.broker_log(wanted.kafka, wanted.since, wanted.group)

        return await self._ask(write)

    async def request_log(self, kafka: str = "3.9", since: int = 0, group: str | None = None) -> str:
        """Requests and responses, as lines of kafka-request.log of that Kafka version."""

        def write(control: Control) -> str:
            wanted = LogQuery(kafka=kafka, since=since, group=group)
            return control.evidence.request_log(wanted.kafka, wanted.since, wanted.group)

        return await self._ask(write)
