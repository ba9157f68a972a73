"""The answer: at most ten lines of text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rejoin.pipeline.findings.cause_texts import DEFAULT_REASONS, SHORT_CAUSES, caused_by
from rejoin.pipeline.findings.finding import RANK
from rejoin.pipeline.findings.formatting import clock, count, is_simulated, period, seconds, span
from rejoin.pipeline.findings.observed_rows import short
from rejoin.pipeline.share_groups.words import summary as share_summary
from rejoin.pipeline.streams_groups.words import summary as streams_summary
from rejoin.pipeline.vocabulary import is_untimed
from rejoin.pipeline.why.story import GroupStory, Row
from rejoin.protocol.printable import printable

MOST_LINES: Final = 10
_INDENT: Final = 9
_AMPLIFIERS: Final = (
    "eager-assignor",
    "unbalanced-assignor",
    "storm",
    "idle-members",
    "ready-for-the-consumer-protocol",
    "during-rollouts",
)
"""Rules about what makes rebalances cost more, and not about what begins them."""
_NEAR_MS: Final = 10 * 60_000
"""A rebalance that ended so long before an instant may still be what is asked for."""


def answer(story: GroupStory, width: int = 100, at_ms: int | None = None) -> list[str]:
    """Why the group rebalances; with an instant, why it did then."""
    chosen = _chosen(story.rebalances, at_ms)
    findings = _about_it(story) if at_ms is None else _explaining(story.findings, chosen, at_ms)
    lines = _paragraph("read", "; ".join(story.read), width, 2)
    lines += _paragraph("group", _status(story), width, 2)
    lines += _paragraph("so far", _summary(story), width, 1)
    if chosen is not None or at_ms is not None:
        lines += _paragraph("last" if at_ms is None else "then", _rebalance(story, chosen, at_ms), width, 2)
    shown = [*_about_instant(story, at_ms), *story.notes, *_about_costs(findings, story)]
    notes = [line for note in shown for line in _paragraph("note", note, width, 2)][:2]
    left = MOST_LINES - len(lines) - len(notes)
    return [*lines, *_why(findings, story, chosen, width, left), *notes][:MOST_LINES]


def _why(findings: Sequence[Row], story: GroupStory, chosen: Row | None, width: int, left: int) -> Iterator[str]:
    if not findings:
        nothing = "no rule found a cause that a setting would change" if story.rebalances else "nothing is wrong so far"
        if story.status.members == 0 and story.status.lag:
            nothing = "no member is in the group to read what lags; start its consumers"
        if chosen is not None and not (chosen.get("client_reason") or DEFAULT_REASONS[0]).startswith(DEFAULT_REASONS):
            nothing += f"; the client said: {chosen['client_reason']}"
        yield from _paragraph("why", nothing, width, left)
        return
    worst, *others = findings
    lines = _paragraph("why", f"{worst['severity']}: {worst['title']}{_weight(worst, story)}", width, 4)
    advice = worst.get("advice") or ""
    setting = f"{worst['setting']}: " if worst.get("setting") else ""
    also = [
        line for each in others[:2] for line in _paragraph("also", f"{each['severity']}: {each['title']}", width, 1)
    ]
    # What to do comes before what else was found.
    while also and left - len(lines) - len(also) < 2:
        also.pop()
    room = left - len(lines) - len(also)
    to_do = _paragraph("do", f"{setting}{advice}", width, min(4, room)) if setting or advice else []
    room -= len(to_do)
    # One line of it would only say again what the title says.
    text = _paragraph("", worst["text"], width, room) if room > 1 else []
    yield from [*lines, *text, *to_do, *also]


def _weight(finding: Row, story: GroupStory) -> str:
    """How many rebalances a finding explains, and what they cost."""
    explained = _explained(finding, story)
    parts = [f"{explained} of {count(len(story.rebalances), 'rebalance')}"] if explained else []
    if finding.get("score"):
        at_most = "up to " if story.costs_are_upper_bounds else ""
        parts.append(f"{at_most}{seconds(finding['score'] * 1_000)} consumer-seconds")
    return f" ({', '.join(parts)})" if parts else ""


def _about_instant(story: GroupStory, at_ms: int | None) -> Iterator[str]:
    """That nothing was recorded at an instant."""
    if at_ms is not None and story.recorded is not None and not story.recorded[0] <= at_ms <= story.recorded[1]:
        begin, end = map(moment, story.recorded)
        yield f"{moment(at_ms)} is outside of what was recorded, from {begin} to {end}"


def _about_costs(findings: Sequence[Row], story: GroupStory) -> Iterator[str]:
    """That a cost is an upper bound, where one is shown."""
    if story.costs_are_upper_bounds and findings and findings[0].get("score"):
        yield "consumer-seconds are an upper bound: no consumer reported its pauses"


def _status(story: GroupStory) -> str:
    status = story.status
    parts = [printable(status.group_id)]
    if status.state:
        since = f" since {moment(status.since_ms)}" if status.since_ms is not None else ""
        parts.append(f"{status.state}{since}")
    if status.generation is not None:
        parts.append(f"{'epoch' if status.group_type in ('share', 'streams') else 'generation'} {status.generation}")
    if status.members is not None:
        parts.append(count(status.members, "member"))
    if status.protocol:
        parts.append(status.protocol)
    if status.lag is not None:
        behind = f", about {span(status.lag_ms)}" if status.lag_ms is not None and status.lag else ""
        parts.append(f"lag {count(status.lag, 'record')}{behind}")
    return f"{parts[0]}: {', '.join(parts[1:])}" if len(parts) > 1 else parts[0]


def _summary(story: GroupStory) -> str:
    rows = story.rebalances
    if not rows:
        if any(story.tasks.get(name) for name in ("tasks", "streams_changes")):
            return streams_summary(story.tasks)
        if story.share_partitions:
            return share_summary(story.share_partitions)
        return story.seen or "no rebalance seen"
    causes = Counter(row["cause"] or "unknown" for row in rows)
    named = ", ".join(f"{number:,} {SHORT_CAUSES.get(cause, cause)}" for cause, number in causes.most_common(4))
    when = period(rows[0]["prepared_at_ms"], max(row["ended_at_ms"] or row["prepared_at_ms"] for row in rows))
    return f"{count(len(rows), 'rebalance')} {when}: {named}{', ...' if len(causes) > 4 else ''}"


def _rebalance(story: GroupStory, row: Row | None, at_ms: int | None) -> str:
    if row is None:
        return f"no rebalance had begun by {moment(at_ms)}"
    if at_ms is not None and at_ms > (row["ended_at_ms"] or at_ms):
        before = f"no rebalance at {moment(at_ms)}; the one before: "
    else:
        before = ""
    who = name_of(story, row)
    moved = f", {row['moved']} moved" if row.get("moved") is not None else ""
    generation = f", generation {row['generation_to']}" if row.get("generation_to") is not None else ""
    took_ms = row["unavailable_ms"]
    if took_ms is None:
        how = "it goes on"
    elif is_untimed(row["prepared_at_ms"]):
        how = f"{row['outcome']}{generation}{moved}"
    else:
        how = f"took {span(took_ms)} ({row['outcome']}{generation}{moved})"
    return f"{before}{moment(row['prepared_at_ms'])} {caused_by(row['cause'] or 'unknown', who)}; {how}"


def name_of(story: GroupStory, row: Row) -> str | None:
    """The member that began a rebalance, by the name that people know."""
    member = row.get("cause_member_id")
    name = row.get("cause_group_instance_id") or story.names.get(member or "") or row.get("cause_client_id")
    return printable(name or short(member)) if name or member else None


def moment(at_ms: int | None) -> str:
    """An instant: of a simulation since its start, of a log without times its line, else with its day, in UTC."""
    if at_ms is None:
        return "an unknown time"
    if is_simulated(at_ms):
        return clock(at_ms)
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S}"


def _chosen(rows: Sequence[Row], at_ms: int | None) -> Row | None:
    """The rebalance that went on at an instant, or the newest before it."""
    begun = [row for row in rows if at_ms is None or row["prepared_at_ms"] <= at_ms]
    return begun[-1] if begun else None


def _explaining(findings: Sequence[Row], chosen: Row | None, at_ms: int) -> list[Row]:
    """The findings about one rebalance; where none names it, those whose time has the instant in it."""
    if chosen is not None and at_ms - (chosen["ended_at_ms"] or at_ms) <= _NEAR_MS:
        named = [row for row in findings if chosen["rebalance_id"] in (row.get("rebalances") or ())]
        if named:
            # What began it comes before what made it cost more.
            return sorted(named, key=lambda row: row["finding"] in _AMPLIFIERS)
    return [row for row in findings if _covers(row, at_ms)]


def _about_it(story: GroupStory) -> list[Row]:
    """The findings in their order; one about many groups that explains little of this one comes after its equals."""

    def aside(row: Row) -> bool:
        return len(row.get("groups") or ()) > 1 and 2 * _explained(row, story) < len(story.rebalances)

    return sorted(story.findings, key=lambda row: (RANK.get(row["severity"], len(RANK)), aside(row)))


def _explained(finding: Row, story: GroupStory) -> int:
    """How many of the group's rebalances a finding explains."""
    return len({row["rebalance_id"] for row in story.rebalances}.intersection(finding.get("rebalances") or ()))


def _covers(row: dict[str, Any], at_ms: int) -> bool:
    return row.get("from_ms") is not None and row["from_ms"] <= at_ms <= (row.get("to_ms") or at_ms)


def _paragraph(label: str, text: str, width: int, most: int) -> list[str]:
    """A labelled text in at most so many lines."""
    if most < 1 or not text:
        return []
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=label.ljust(_INDENT),
        subsequent_indent=" " * _INDENT,
        max_lines=most,
        placeholder=" ...",
        break_on_hyphens=False,
    )
