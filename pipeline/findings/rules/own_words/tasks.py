"""Tasks of Kafka Streams in the logs of its threads: how long they took to run, and whose state was discarded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import names, period, span, times
from rejoin.pipeline.findings.observed_rows import ObservedEvent
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.findings.rules.own_words.events import consumers_of, distinct, finding_of
from rejoin.pipeline.vocabulary import CLIENT_LOG, TASKS_CORRUPTED, TASKS_READY, is_untimed

SLOW_MS: Final = 10_000
"""Tasks that run within this after their assignment had little to restore."""
LONG_MS: Final = 60_000
"""Tasks that take longer than this are a stop that people notice."""


@reads(TASKS_READY, columns=("waited_ms", "problem"), source=(CLIENT_LOG,))
def slow_restoration(causes: Causes) -> Iterator[Finding]:
    """Active tasks of a thread of Kafka Streams ran long after they were assigned."""
    history = causes.history
    slow = [each for each in history.events if each.event == TASKS_READY and _waited_ms(each) >= SLOW_MS]
    if not slow:
        return
    longest = max(slow, key=_waited_ms)
    who, most = consumers_of(history, slow), _waited_ms(longest)
    tasks = _tasks(longest)
    which = f" (tasks {', '.join(tasks)})" if tasks else ""
    is_once = len(slow) == 1
    how_often = "" if is_once else f", {times(len(slow))}"
    needed = "" if is_once else f"more than {span(SLOW_MS)}; at most "
    yield finding_of(
        "slow-restoration",
        f"Tasks of {names(who)} took {'' if is_once else 'up to '}{span(most)} from assignment to running{how_often}",
        f"{capital(times(len(slow)))}, {period(slow[0].at_ms, slow[-1].at_ms)}, {names(who)} "
        f"needed {needed}{span(most)} from an assignment until all active tasks ran{which}. A task with state restores "
        "it from its changelog topic first, and processes nothing until then: for its partitions, this time adds to "
        "that of the rebalance.",
        who,
        slow,
        setting="num.standby.replicas",
        advice="With num.standby.replicas=1 or more, another instance has a copy of the state, and a task that moves "
        "restores only the end of its changelog. With group.protocol=streams the client ignores this setting: set "
        "streams.num.standby.replicas for the group, or group.streams.num.standby.replicas for all groups of the "
        "brokers. Keep state.dir on a disk that survives restarts; with "
        "group.instance.id and a longer session.timeout.ms, a restart moves no task.",
        numbers={"times": len(slow), "longest_ms": most, "tasks": len(tasks)},
        severity=MEDIUM if most >= LONG_MS else LOW,
    )


@reads(TASKS_CORRUPTED, columns=("problem",), source=(CLIENT_LOG,))
def corrupted_tasks(causes: Causes) -> Iterator[Finding]:
    """A thread of Kafka Streams discards the state of tasks and builds it anew."""
    history = causes.history
    events = [each for each in history.events if each.event == TASKS_CORRUPTED]
    if not events:
        return
    often = distinct(events)
    who = consumers_of(history, events)
    tasks = list(dict.fromkeys(task for each in events for task in _tasks(each)))
    which = f"task{'' if len(tasks) == 1 else 's'} {', '.join(tasks)}" if tasks else "tasks"
    yield finding_of(
        "corrupted-tasks",
        f"{names(who)} discarded the state of {which}, {times(len(often))}",
        f"{capital(times(len(often)))}, {period(events[0].at_ms, events[-1].at_ms)}, {names(who)} "
        f"found the state of {which} corrupted and closed it. Kafka Streams builds such state "
        "anew from the changelog topics, and the tasks process nothing until then.",
        who,
        events,
        advice="Read the exception at this line: a commit or transaction that timed out (look at the brokers of that "
        "time), or an offset that its changelog topic does not have any more (a topic that was deleted, or an "
        "instance that was away for long).",
        numbers={"times": len(often), "tasks": len(tasks)},
        severity=LOW,
    )


def _waited_ms(event: ObservedEvent) -> int:
    return 0 if is_untimed(event.at_ms) else int((event.more or {}).get("waited_ms") or 0)


def _tasks(event: ObservedEvent) -> list[str]:
    return [task for each in str((event.more or {}).get("problem") or "").split(",") if (task := each.strip())]
