"""The rule ``known-bug``: signs of known bugs in logs, compared with the versions that the logs state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.journal.kafka_logs.bug_signs import BROKER
from rejoin.journal.kafka_logs.clients.names import JAVA, KAFKAJS
from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients import table as clients
from rejoin.pipeline.findings.clients.libraries import versions_of
from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import names, period, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.known_bugs.bug import KnownBug, Sighting
from rejoin.pipeline.findings.known_bugs.happenings import lines, of_lines
from rejoin.pipeline.findings.known_bugs.table import BUGS
from rejoin.pipeline.findings.observed_rows import ObservedEvent, all_exact, name_of_client
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.vocabulary import BROKER_LOG, CLIENT_LOG

_SOURCES: Final = (CLIENT_LOG, BROKER_LOG)
_CLIENTS: Final = {JAVA: clients.JAVA, KAFKAJS: clients.KAFKAJS}
"""Names of clients in the table of settings where those of readers differ."""


@reads("broker_bug_sign", "software_version", of_all_groups=True, source=_SOURCES)
@reads("bug_sign", "software_version", source=_SOURCES)
def known_bug(causes: Causes) -> Iterator[Finding]:
    """A known bug left its sign, and the version is one that has it or is not known."""
    history = causes.history
    for bug in BUGS:
        seen = of_lines(lines(history, bug.sign)) if isinstance(bug.sign, str) else bug.sign(causes)
        if seen is None:
            continue
        version = _stated(history, bug, seen)
        if version is None or bug.affects(version):
            yield _found(history, bug, seen, version)


def _stated(history: GroupHistory, bug: KnownBug, seen: Sighting) -> str | None:
    """The version of the software at that time: what its own log says, else what all logs agree on."""
    stated = [
        (each, each.reason.removeprefix(f"{bug.software} "))
        for each in history.events
        if each.event == "software_version" and (each.reason or "").startswith(f"{bug.software} ") and each.reason
    ]
    places = {(each.node, None) for each in seen.evidence} | {(None, each.file) for each in seen.evidence}
    own = [one for one in stated if (one[0].node, None) in places or (None, one[0].file) in places]
    if own:
        before = [version for event, version in own if event.at_ms <= seen.at_ms]
        return before[-1] if before else own[0][1]
    versions = {version for _, version in stated}
    if not versions and bug.software != BROKER:
        versions = versions_of(history.sessions, _CLIENTS.get(bug.software, bug.software))
    return versions.pop() if len(versions) == 1 else None


def _found(history: GroupHistory, bug: KnownBug, seen: Sighting, version: str | None) -> Finding:
    who = _names(history, seen.evidence) or [history.who(each) for each in seen.member_ids]
    whose = f", by the log of {names(who)}" if who and bug.software != BROKER else ""
    known = (
        f"The log states version {version} of {bug.called}, which has {bug.name}: {bug.does}."
        if version is not None
        else f"The log does not state the version. If it is {bug.called} {bug.versions}, "
        f"this may be {bug.name}: {bug.does}."
    )
    *others, newest = bug.fixed
    too = f"; {names(others)} {'has' if len(others) == 1 else 'have'} the fix, too" if others else ""
    upgrade = f"Upgrade {bug.called.replace('a ', 'the ', 1)} to {newest} or later{too}."
    return Finding(
        "known-bug",
        f"{_begin(bug.name) if version is not None else f'Perhaps {bug.name}'}: {bug.title}",
        f"{capital(times(seen.times))} {period(seen.at_ms, seen.until_ms)}{whose}, {bug.shows}. {known}",
        0.0,
        seen.at_ms,
        seen.until_ms,
        setting=bug.setting,
        advice=" ".join(part for part in (upgrade, bug.cure, f"See {bug.link}.") if part),
        numbers={"times": seen.times},
        members=who,
        rebalances=list(seen.rebalances),
        evidence=[each.as_evidence() for each in seen.evidence],
        exact=isinstance(bug.sign, str) and version is not None and all_exact(seen.evidence),
        severity=LOW if version is None else MEDIUM,
    )


def _names(history: GroupHistory, events: Sequence[ObservedEvent]) -> list[str]:
    named = (name_of_client(each.client_id) or history.who(each.member_id or None) for each in events)
    return list(dict.fromkeys(name for name in named if name != "a member"))


def _begin(name: str) -> str:
    """A name at the beginning of a title; those of libraries are as they are."""
    return f"A{name[1:]}" if name.startswith("a ") else name
