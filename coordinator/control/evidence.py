"""What happened since a mark: as a transcript, and in the forms of Kafka's own logs.

The writers are imported when they are first used: most tests pass, and should not wait for them when they start.
"""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.errors import InvalidArgument, NotPossible, StepsNotKept
from rejoin.coordinator.control.fault_rules import Body
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.control.sent_requests import RecordedRequest, RequestsQuery, sent_requests
from rejoin.journal.events.base import Event
from rejoin.transcript.recording import Step, StepRecorder, StepsGone


class RecordingQuery(Body):
    """Which part of the recording."""

    since: int = Field(default=0, ge=0, description="a mark: what came behind it; all of it unless given")
    group: str | None = Field(default=None, description="what is about this group only")


class TranscriptQuery(RecordingQuery):
    """Which part of the recording, and what it shows."""

    claim: str = Field(default="", description="the transcript's first line: what it shows")


class LogQuery(RecordingQuery):
    """Which part of the recording, and in whose form."""

    kafka: str = Field(default="3.9", description="the Kafka version whose form it shall have")


class Evidence:
    """Writes it from the recording."""

    def __init__(
        self, settings: Settings, runtime: ControlledRuntime, recorder: StepRecorder, *, is_replayable: bool = True
    ) -> None:
        self._is_replayable = is_replayable
        self._settings = settings
        self._runtime = runtime
        self._recorder = recorder

    def transcript(self, since: int = 0, group_id: str | None = None, claim: str = "") -> str:
        """Since a mark; what came before stands there as quiet commands, so that the whole can be played."""
        from rejoin.transcript.writer import write_transcript  # noqa: PLC0415

        if not self._is_replayable:
            raise NotPossible("several-brokers", "a transcript is of one node; of several brokers, read the requests")
        steps = self._all(since)
        return write_transcript(steps, self._settings, self._recorder.began_at, since, group_id, claim)

    def broker_log(self, kafka: str, since: int = 0, group_id: str | None = None) -> str:
        """The lines of ``server.log`` in a Kafka version's words."""
        from rejoin.coordinator.control.broker_log_writer.versions import kafka_version  # noqa: PLC0415
        from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog  # noqa: PLC0415

        version = kafka_version(kafka)
        settings = self._settings
        counts = (settings.offsets_topic_num_partitions, settings.transaction_state_log_num_partitions)
        log = BrokerLog(version, settings.broker_id, *counts, group_max_size=settings.group_max_size)
        lines: list[str] = []
        for step in self._all(since):
            for event in step.effects:
                if isinstance(event, Event):
                    said = log.lines(event, step.at)
                    if step.number > since and group_id in (None, getattr(event, "group_id", None)):
                        lines += said
        return _text(lines)

    def request_log(self, kafka: str, since: int = 0, group_id: str | None = None) -> str:
        """The lines of ``kafka-request.log``, one for each answer."""
        from rejoin.coordinator.control.broker_log_writer.request_log import SINCE, RequestLog  # noqa: PLC0415
        from rejoin.coordinator.control.broker_log_writer.versions import kafka_version  # noqa: PLC0415

        version = kafka_version(kafka, SINCE, "; older request logs are not JSON")
        lines = RequestLog(version, self._runtime.broker).lines(self._all(since), since, group_id)
        return _text(lines)

    def requests(self, wanted: RequestsQuery) -> list[RecordedRequest]:
        """What clients sent, and what they were answered."""
        return sent_requests(self._all(wanted.since), wanted)

    def _all(self, since: int) -> list[Step]:
        """The whole recording, if what came behind the mark is all there."""
        recorder = self._recorder
        if since > recorder.mark:
            reason = f"expected a mark of this recording, up to {recorder.mark}"
            raise InvalidArgument("since", reason, since, f"since: {reason}, not {since}")
        try:
            recorder.since(since)
        except StepsGone as problem:
            raise StepsNotKept(f"expected {problem.first} or more", since, str(problem)) from None
        return recorder.since(recorder.first)


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
