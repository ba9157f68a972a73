"""Evidence since a mark: a transcript, and lines in the forms of Kafka's own logs.

The writers are imported when they are first used: most tests pass, and should not wait for them when they start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.errors import ControlError, InvalidArgument, NotPossible, StepsNotKept, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.control.sent_requests import RecordedRequest, RequestsQuery, groups_in, sent_requests
from rejoin.coordinator.core.inputs import Broker
from rejoin.journal.events.base import Event
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.transcript.steps import Step, StepRecorder, StepsGone

_LONGEST_SHOWN: Final = 200


class RecordingQuery(Body):
    """Which part of the recording."""

    since: int = Field(default=0, ge=0, description="a mark; only events after it. Unless given, all events")
    group: str | None = Field(default=None, description="only events of this group")


class TranscriptQuery(RecordingQuery):
    """Which part of the recording, and what it shows."""

    claim: str = Field(default="", description="the transcript's first line, which says what it shows")


class LogQuery(RecordingQuery):
    """Which part of the recording, and in whose form."""

    kafka: str = Field(default="3.9", description="the Kafka version whose log format is written")


class RequestEvidence:
    """Evidence of what clients sent and got, from recorded requests; of a broker of any kind."""

    def __init__(self, recorder: StepRecorder) -> None:
        self._recorder = recorder

    @property
    def broker(self) -> Broker:
        """The broker that the lines of a request log name."""
        raise NotImplementedError

    def known_groups(self) -> Sequence[str]:
        """Groups that there are now."""
        raise NotImplementedError

    def request_log(self, kafka: str, since: int = 0, group_id: str | None = None) -> str:
        """The lines of ``kafka-request.log``, one for each answer."""
        from rejoin.coordinator.control.broker_log_writer.request_log import SINCE, RequestLog  # noqa: PLC0415
        from rejoin.coordinator.control.broker_log_writer.versions import kafka_version  # noqa: PLC0415

        version = kafka_version(kafka, SINCE, "; older request logs are not JSON")
        lines = RequestLog(version, self.broker).lines(self._all(since, group_id), since, group_id)
        return _text(lines)

    def requests(self, wanted: RequestsQuery) -> list[RecordedRequest]:
        """Requests of clients, with their responses."""
        return sent_requests(self._all(wanted.since), wanted)

    def last_requests(self, most: int, since: int = 0, group_id: str | None = None) -> str:
        """The last requests that are kept, a line each; without a Fetch that was answered without an error."""
        from rejoin.transcript.responses import show  # noqa: PLC0415

        recorder = self._recorder
        lines: list[str] = []
        for sent in reversed(sent_requests(recorder.all(), RequestsQuery(since=since))):
            if len(lines) == most:
                lines.append("(earlier ones are left out; requests() has all)")
                break
            errors = sent.errors()
            if sent.api == "Fetch" and sent.response is not None and not errors:
                continue
            if group_id is not None and group_id not in traits_of(sent.request, sent.version).groups:
                continue
            answer = "no answer" if sent.response is None else _abridged(show(sent.response))
            said = " ".join([*(name for name in errors if name not in answer), answer])
            asked = _abridged(sent.request.to_json(sent.version).decode())
            at = sent.at_ms - recorder.began_at
            lines.append(f"+{at}ms  {sent.client_id}  {sent.api} v{sent.version} {asked} -> {said}")
        return _text(lines[::-1])

    def _all(self, since: int, group_id: str | None = None) -> list[Step]:
        """All recorded steps, if all behind the mark are kept and the group is known."""
        recorder = self._recorder
        if since > recorder.mark:
            reason = f"expected a mark of this recording, up to {recorder.mark}"
            raise InvalidArgument("since", reason, since, f"since: {reason}, not {since}")
        steps = recorder.all()
        try:
            recorder.since(since)
        except StepsGone as problem:
            raise StepsNotKept(f"expected {problem.first} or more", since, str(problem)) from None
        if group_id is not None:
            self._check_group(group_id, steps)
        return steps

    def _check_group(self, group_id: str, steps: Sequence[Step]) -> None:
        """Refuse a group that neither exists nor stands in any request or event."""
        known = set(self.known_groups())
        for step in steps:
            if group_id in known:
                return
            known |= groups_in(step)
        if group_id not in known:
            raise unknown("group", group_id, sorted(known))


class Evidence(RequestEvidence):
    """Evidence of a node of ours: writes it from the recorded steps."""

    def __init__(
        self, settings: Settings, runtime: ControlledRuntime, recorder: StepRecorder, *, is_replayable: bool = True
    ) -> None:
        super().__init__(recorder)
        self.is_replayable = is_replayable
        self._settings = settings
        self._runtime = runtime

    @property
    def broker(self) -> Broker:
        """The node."""
        return self._runtime.broker

    def known_groups(self) -> Sequence[str]:
        """Groups of the node."""
        return self._runtime.node.group_ids()

    def transcript(self, since: int = 0, group_id: str | None = None, claim: str = "") -> str:
        """Since a mark; what came before stands there as quiet commands, so that the whole can be played."""
        from rejoin.transcript.writer import write_transcript  # noqa: PLC0415

        if not self.is_replayable:
            detail = (
                "a transcript needs a single broker, and there are several; requests() and GET /control/requests list "
                "the requests"
            )
            raise NotPossible("several-brokers", detail)
        steps = self._all(since, group_id)
        return write_transcript(steps, self._settings, self._recorder.began_at, since, group_id, claim)

    def transcript_or_requests(self, claim: str, most: int) -> str:
        """The transcript from the beginning; where there can be none, the reason and the last requests."""
        try:
            return self.transcript(claim=claim)
        except ControlError as problem:
            return f"# {claim} No transcript: {problem}.\n\n{self.last_requests(most)}"

    def broker_log(self, kafka: str, since: int = 0, group_id: str | None = None) -> str:
        """The lines of ``server.log`` in a Kafka version's words."""
        from rejoin.coordinator.control.broker_log_writer.versions import kafka_version  # noqa: PLC0415
        from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog  # noqa: PLC0415

        version = kafka_version(kafka)
        settings = self._settings
        counts = (settings.offsets_topic_num_partitions, settings.transaction_state_log_num_partitions)
        log = BrokerLog(version, settings.broker_id, *counts, group_max_size=settings.group_max_size)
        lines: list[str] = []
        for step in self._all(since, group_id):
            for event in step.effects:
                if isinstance(event, Event):
                    said = log.lines(event, step.at)
                    if step.number > since and group_id in (None, getattr(event, "group_id", None)):
                        lines += said
        return _text(lines)


def _abridged(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
