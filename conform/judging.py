"""Plays scripts on a broker, a few at a time, and compares each with its recording."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from rejoin.conform.applicability import why_not
from rejoin.conform.comparison.brief_answers import UNTIMED, VARIES, brief, only_codes
from rejoin.conform.comparison.by_release import from_release
from rejoin.conform.comparison.compare import CLOSED, NO_ANSWER, Difference, differences, exchanges
from rejoin.conform.comparison.exchanges import NamedValues
from rejoin.conform.comparison.outcomes import ClassifiedDifference, ScriptOutcome, classified
from rejoin.conform.judged_broker import BrokerRefused, JudgedBroker, NotSpoken
from rejoin.conform.player.connection import BrokerAccess, ConnectionClosed
from rejoin.conform.player.exchange_run import ExchangeRun
from rejoin.conform.player.messages import Json, NoSuchField, UnreadableResponse, api_key
from rejoin.conform.player.older_versions import in_version, is_alike, version_to_ask, with_ids
from rejoin.conform.player.play import Play, Target
from rejoin.conform.player.prefix import GROUP, INTERNAL, RunPrefix
from rejoin.conform.player.recording import events
from rejoin.conform.player.script import Script, ScriptFailed
from rejoin.conform.recordings.by_release import ReleaseRecording
from rejoin.conform.recordings.reading import PackedScript
from rejoin.conform.records.described_transaction_log import with_transactions
from rejoin.conform.steps.player import COMMANDS, NOT_SPOKEN, Steps

Form: TypeAlias = Callable[[Json, Any], Any]
"""Brings an answer to a recorded line into the form of the recording."""
SHARE_GROUPS: Final = "share-groups"
AT_ONCE: Final = 6
PATIENCE_SECONDS: Final = 8.0
LONGEST_SECONDS: Final = 60.0
LATE_MS: Final = 300
"""A script that was played so much later than in the recording, and differs, is played once more."""
FIRST_PLAYED_AGAIN: Final = 10_000
"""Number of the first script that is played once more: it finds nothing that its first play has made."""
UNLIKE_MS: Final = 1_000
"""An answer may come so much earlier or later than Kafka's, or by half of the time that Kafka took."""

PROBLEMS: Final = (
    *(ScriptFailed, TimeoutError, OSError, LookupError, TypeError, ValueError, AssertionError, struct.error),
    *(ConnectionClosed, BrokerRefused),
)
"""Ways in which a script ends on a broker that answers otherwise."""


@dataclass
class Judge:
    """Plays scripts on a broker. Everything that they make begins with ``prefix``."""

    broker: JudgedBroker
    prefix: str = field(default_factory=lambda: f"conform-{secrets.token_hex(4)}-")
    at_once: int = AT_ONCE
    release: ReleaseRecording | None = None
    """The release with which the broker is compared; without one, the newest."""
    _shared: dict[str, int] = field(default_factory=dict)
    _altered: dict[str, dict[str, None]] = field(default_factory=dict)
    """Names of settings that groups of the run were given."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST_PLAYED_AGAIN))
    """Numbers of scripts that are played once more."""

    async def judge(
        self, scripts: Iterable[PackedScript], done: Callable[[ScriptOutcome], None]
    ) -> list[ScriptOutcome]:
        """The outcomes in the order of the scripts; ``done`` is called with each as it comes."""
        asked = [script for script in scripts if not script.full_name.startswith("admin/")]
        alone = [script for script in scripts if script.full_name.startswith("admin/")]
        await self.broker.warm_up(self.prefix)
        if any(script.of_set == SHARE_GROUPS and why_not(script, self.broker.features) is None for script in asked):
            await self.broker.warm_up_share_state(self.prefix)
        await self._make_shared(asked)
        found: dict[int, ScriptOutcome] = {}

        async def play(wanted: Iterable[tuple[int, PackedScript]], at_once: int, *, is_last: bool) -> None:
            slots = asyncio.Semaphore(at_once)

            async def one(number: int, script: PackedScript) -> None:
                async with slots:
                    number_of_play = number if number not in found else next(self._numbers)
                    found[number] = await self._outcome(number_of_play, script)
                if is_last or not found[number].is_doubtful:
                    done(found[number])

            await asyncio.gather(*(one(number, script) for number, script in wanted))

        numbered = dict(enumerate([*asked, *alone]))
        await play(list(numbered.items())[: len(asked)], self.at_once, is_last=False)
        await play(list(numbered.items())[len(asked) :], 1, is_last=False)
        # A machine may have been busy with something else.
        again = [(number, numbered[number]) for number, outcome in found.items() if outcome.is_doubtful]
        await play(again, max(1, self.at_once // 3), is_last=True)
        return [found[number] for number in numbered]

    async def clean_up(self) -> list[str]:
        """Remove everything that scripts have made; returns what is left, with the reason."""
        left: list[str] = []
        try:
            await self.broker.reset_groups(self._altered)
        except (*PROBLEMS, NotSpoken) as problem:
            left.append(f"settings of groups: {type(problem).__name__} {problem}".rstrip())
        return left + await self.broker.remove(self.prefix)

    def _note_altered(self, script: PackedScript, names: RunPrefix) -> None:
        """Remember the settings that a script gives to groups."""
        for line in script.requests:
            if line["api"] == "IncrementalAlterConfigs":
                for resource in line["request"]["resources"]:
                    if resource["resourceType"] == GROUP:
                        altered = self._altered.setdefault(names.name(resource["resourceName"]), {})
                        altered.update(dict.fromkeys(each["name"] for each in resource["configs"]))

    async def _make_shared(self, scripts: Iterable[PackedScript]) -> None:
        """Topics that scripts written in steps share."""
        for script in scripts:
            if script.is_steps and why_not(script, self.broker.features) is None:
                named = script.header["group"]
                self._shared |= {name: n for name, n in script.header["topics"].items() if named not in name}
        if not self.broker.makes_topics:
            self._shared.clear()
        if self._shared:
            await self.broker.make_topics({self.prefix + name: {"partitions": n} for name, n in self._shared.items()})

    async def _outcome(self, number: int, script: PackedScript) -> ScriptOutcome:
        outcome = ScriptOutcome(script.of_set, script.name, not_applicable=why_not(script, self.broker.features))
        if outcome.not_applicable is not None:
            return outcome
        began = time.monotonic()
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                play = self._steps if script.is_steps else self._exchanges
                found, late_ms = await play(number, script)
                outcome = replace(outcome, differences=self._compared(script, found), is_late=late_ms > LATE_MS)
        except NotSpoken as problem:
            outcome = replace(outcome, not_applicable=f"{problem} is not spoken")
        except PROBLEMS as problem:
            text = str(problem) or type(problem).__name__
            if NOT_SPOKEN in text or isinstance(problem, NoSuchField):
                outcome = replace(outcome, not_applicable=text.partition(": ")[2] or text)
            else:
                failed = Difference(0, "the script", 0, "", "(played to its end)", f"({text})")
                outcome = replace(outcome, differences=classified([failed]))
        return replace(outcome, seconds=time.monotonic() - began)

    def _compared(self, script: PackedScript, found: list[Difference]) -> tuple[ClassifiedDifference, ...]:
        """The differences from the release, of those from the newest one."""
        fields = self.release.scripts.get(script.full_name, ()) if self.release else ()
        return from_release(fields, classified(found)) if fields else classified(found)

    def _target(self, prefix: str, topics: dict[str, int], ids: dict[str, str] | None = None) -> Target:
        broker = self.broker
        return Target(
            {broker.number: broker.address},
            broker.features.versions,
            topics,
            broker.offsets_partitions,
            ids or {},
            lenient=True,
            patience=PATIENCE_SECONDS,
            access=BrokerAccess(broker.access.tls, broker.access.login, RunPrefix(prefix)),
        )

    # --- scripts in steps

    async def _steps(self, number: int, script: PackedScript) -> tuple[list[Difference], float]:
        header = script.header
        is_alone = script.of_set == "admin" or number >= FIRST_PLAYED_AGAIN
        prefix = f"{self.prefix}{number}-" if is_alone else self.prefix
        own = {name: n for name, n in header["topics"].items() if is_alone or name not in self._shared}
        if not self.broker.makes_topics:
            text = json.dumps(script.requests)
            own = {name: n for name, n in own.items() if name in text}
        if own:
            await self.broker.make_topics({prefix + name: {"partitions": n} for name, n in own.items()})
        subject, _, name = header["group"].partition(".")
        played = Script(name, Steps(self._with_versions(script)), subject=subject)
        lines = events(await Play(played, self._target(prefix, header["topics"])).play())
        return list(_beside(script.lines, lines)), 0.0

    def _with_versions(self, script: PackedScript) -> tuple[Json, ...]:
        """The steps, each in the version in which it was recorded, if the broker speaks it."""
        requests = iter(script.requests)
        found = []
        for step in script.header["steps"]:
            if not COMMANDS & step.keys():
                line = next(requests, None)
                oldest, newest = self.broker.features.versions.get(api_key(line["api"]), (0, -1)) if line else (0, -1)
                if line and "version" not in step and "claims" not in step and oldest <= line["version"] <= newest:
                    found.append({**step, "version": line["version"]})
                    continue
            found.append(step)
        return tuple(found)

    # --- recorded exchanges

    async def _exchanges(self, number: int, script: PackedScript) -> tuple[list[Difference], float]:
        prefix, header = f"{self.prefix}{number}-", script.header
        names = RunPrefix(prefix)
        made = await self.broker.make_topics({names.name(name): about for name, about in header["topics"].items()})
        ids = {names.plain(name): topic_id for name, topic_id in made.items()}
        self._note_altered(script, names)
        host, port = self.broker.address
        addresses: dict[str, dict[Any, Any]] = {"host": {host: "127.0.0.1"}, "port": {port: "port-1"}}
        values = NamedValues(0, addresses, is_fresh=header.get("fresh") is not False)
        for name, topic_id in ids.items():
            values.name(topic_id, f"id:{name}")
        spoken = self.broker.features.versions
        lines = [in_version(line, version_to_ask(line, spoken)) if "api" in line else line for line in script.lines]
        run = ExchangeRun(lines, self.broker.number, values)
        play = Play(Script(script.name, run), self._target(prefix, {}, ids))
        values.start = play.now()
        await play.play()
        in_form: Form = partial(brief, prefix=prefix) if script.is_brief else _as_it_is
        return [one for line in script.requests for one in _of_exchange(run, values, line, in_form)], run.late_ms


def _beside(recorded: list[Json], lines: list[Json]) -> Iterator[Difference]:
    """Differences; where another version was spoken, only those of fields that both versions have."""
    theirs = {asked.number: asked for asked in exchanges(lines)}
    for asked in exchanges(recorded):
        other = theirs.get(asked.number)
        if other is None:
            yield Difference(asked.number, asked.api, asked.version, "", "(asked)", "(not asked)", asked.request)
            continue
        for one in differences(asked, other.answer, times=False):
            if one.path == "producerId" and all(isinstance(each, int) and each >= 0 for each in (one.kafka, one.other)):
                continue  # Each broker draws its own.
            if other.version == asked.version or (one.kafka and one.other and "(absent)" not in (one.kafka, one.other)):
                yield one
        if asked.answer is not None and other.answer is not None:
            yield from _late(asked.number, asked, asked.answer.at - asked.at, other.answer.at - other.at)


def _late(number: int, asked: object, recorded: float, here: float) -> Iterator[Difference]:
    api, version, request = (getattr(asked, name) for name in ("api", "version", "request"))
    if abs(recorded - here) > max(UNLIKE_MS, recorded / 2):
        yield Difference(number, api, version, "at", round(recorded), round(here), request)


def without_internal(value: Any) -> Any:
    """An answer without partitions of internal topics: names and settings decide which, and groups may share one."""
    if isinstance(value, list):
        return [without_internal(each) for each in value]
    if not isinstance(value, dict):
        return value
    name = value.get("topic", value.get("name"))
    if isinstance(name, str) and name.startswith(INTERNAL):
        return {**value, "partitions": bool(value.get("partitions"))}
    return {key: without_internal(each) for key, each in value.items()}


def _as_it_is(_: Json, answer: Any) -> Any:
    return answer


def _of_exchange(run: ExchangeRun, values: NamedValues, line: Json, in_form: Form) -> Iterator[Difference]:
    number, api, version, recorded = line["n"], line["api"], line["version"], line["answer"]
    answer = run.answers.get(number, NO_ANSWER)
    if isinstance(recorded, str):
        recorded = CLOSED
    if not isinstance(recorded, dict) or not isinstance(answer, dict):
        if recorded is not answer and recorded != answer:
            yield Difference(number, api, version, "", recorded, answer, line["request"])
        return
    if api == "ApiVersions":
        return
    is_older = run.asked[number].version != version
    try:
        named = without_internal(values.named(with_transactions(answer)))
        named = in_form(line, with_ids(api, named) if is_older else named)
        if line.get(VARIES):
            recorded, named = only_codes(recorded), only_codes(named)
    except (AssertionError, LookupError, ValueError, UnreadableResponse, struct.error) as problem:
        yield Difference(number, api, version, "records", "(records)", f"(unreadable: {problem})", line["request"])
        return
    for path, kafka, other in values.differences(without_internal(recorded), named):
        if is_older and is_alike(kafka, other):
            continue
        yield Difference(number, api, version, path.lstrip("."), kafka, other, line["request"])
    if api in UNTIMED:
        return
    asked = run.asked[number]
    here = asked.answered_at - asked.sent_at
    if abs(line["answered"] - line["sent"] - here) > max(UNLIKE_MS, (line["answered"] - line["sent"]) / 2):
        recorded_ms = round(line["answered"] - line["sent"])
        yield Difference(number, api, version, "at", recorded_ms, round(here), line["request"])
