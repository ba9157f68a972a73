"""Rebalances that follow each other closely, whatever each of them came from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.causes import (
    CHANGED,
    DEPLOY,
    FLAPPING,
    KILLED,
    LATE_POLL,
    MISSED_SESSION,
    OUTAGE,
    RESTARTED,
    SUBSCRIBED,
    Causes,
)
from rejoin.pipeline.findings.clients.advice import can_be_static, go_on_meanwhile
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.formatting import count, names, span
from rejoin.pipeline.findings.observed_rows import ObservedRebalance, all_exact
from rejoin.pipeline.findings.phrases import first, last, share, stood_still, when

STORM: Final = 5
"""Rebalances that follow each other closely make a storm from this many on."""
COLD_START: Final = 3
"""Rebalances that make a storm in a group that has just begun, where one would have done (KIP-134)."""
PEACE_MS: Final = 45_000
"""Deliberate changes that mostly leave the group in peace for this long are no storm."""
LEAST_PART: Final = 1 / 3
"""A storm is no finding of its own where other findings name more than all but this share of it."""

_BEGAN: Final = {
    "join-new": "a member that joined",
    "rejoin-metadata": "a member that came with another subscription",
    "rejoin-leader": "the leader that joined again",
    "static-metadata": "a static member that restarted in the middle of a rebalance",
    "static-protocol": "a static member that restarted with other assignors",
    "leave": "a member that left",
    "session-expiry": "a session that ended",
    "sync-expiry": "a member that did not sync",
    "store-failure": "an assignment that could not be stored",
    "over-capacity": "group.max.size",
    "downgrade": "the last member of the consumer protocol, which went",
}

_PARTS: Final[dict[str, Callable[[str], str]]] = {
    DEPLOY: lambda _: "a rolling restart",
    FLAPPING: lambda who: who,
    LATE_POLL: lambda _: "polls that came late",
    MISSED_SESSION: lambda _: "sessions that were missed",
    KILLED: lambda _: "members that died",
    OUTAGE: lambda _: "a broker that was away",
    CHANGED: lambda _: "members that were added or taken away",
    RESTARTED: lambda _: "single restarts",
    SUBSCRIBED: lambda _: "changed subscriptions",
}
"""Words for the parts of a storm, by the kind of cause."""


_START: Final = "the group's start"


def storm(causes: Causes) -> Iterator[Finding]:
    """Rebalances follow each other so closely that the group hardly gets to work in between."""
    history = causes.history
    chains: dict[int, list[ObservedRebalance]] = defaultdict(list)
    for each in history.rebalances:
        # The second half of a cooperative rebalance is as intended (KIP-429).
        if each.chain is not None and not history.is_second_half(each) and not history.uses_consumer_protocol:
            chains[each.chain].append(each)
    storms = [
        chain
        for _, chain in sorted(chains.items())
        if _is_cold_start(chain) or (len(chain) >= STORM and not _is_meant(causes, chain))
    ]
    if not storms:
        return
    caused = [each for chain in storms for each in chain]
    longest = max(storms, key=lambda chain: (len(chain), -chain[0].prepared_at_ms))
    lasted = longest[-1].until_ms - longest[0].prepared_at_ms
    parts = _parts(causes, caused)
    unexplained = [each for each in caused if each.rebalance_id not in causes.of_rebalances]
    # Where its parts are findings themselves, only the rest is its own.
    cost = history.cost_s(unexplained if parts else caused)
    setting, advice = _advice(causes, storms, caused)
    yield Finding(
        "storm",
        f"{count(len(longest), 'rebalance')} in {span(lasted)}"
        + (f", and {count(len(storms) - 1, 'more storm')}" if storms[1:] else ""),
        f"{share(history, caused)} {when(caused)} followed each other closely"
        + (f", in {count(len(storms), 'storm')}; the longest was {len(longest)}" if storms[1:] else "")
        + f"{',' if not storms[1:] else ''} in {span(lasted)}. {_mix(caused, parts)}"
        + stood_still(history, history.cost_s(caused)),
        cost,
        first(caused),
        last(caused),
        setting=setting,
        advice=advice,
        numbers={
            "storms": len(storms),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "longest": len(longest),
            "longest_ms": lasted,
            "main_cause": Counter(each.cause for each in caused).most_common(1)[0][1],
            "unexplained": len(unexplained),
            "consumer_seconds": history.cost_s(caused),
        },
        rebalances=[each.rebalance_id for each in caused],
        exact=all_exact(caused),
    )


def _is_cold_start(chain: Sequence[ObservedRebalance]) -> bool:
    """Whether a group that was empty grew member by member, each with a rebalance of its own."""
    return len(chain) >= COLD_START and bool(chain[0].initial) and all(each.cause == "join-new" for each in chain)


def _is_meant(causes: Causes, chain: Sequence[ObservedRebalance]) -> bool:
    """Whether most rebalances add or remove members, with time to work in between."""
    meant = [each for each in chain if (cause := causes.of_rebalances.get(each.rebalance_id)) and cause.kind == CHANGED]
    gaps = sorted(after.prepared_at_ms - before.until_ms for before, after in pairwise(chain))
    return len(meant) * 3 >= len(chain) * 2 and gaps[len(gaps) // 2] >= PEACE_MS / 3


def _parts(causes: Causes, caused: Sequence[ObservedRebalance]) -> list[tuple[str, int]]:
    """Causes of the rebalances with their numbers, the most frequent first."""
    found: Counter[str] = Counter()
    for each in caused:
        cause = causes.of_rebalances.get(each.rebalance_id)
        if cause is not None:
            found[_PARTS[cause.kind](cause.name)] += 1
    if found:
        starts = [each for each in caused if each.initial and each.rebalance_id not in causes.of_rebalances]
        found.update({_START: len(starts)} if starts else {})
    return found.most_common()


def _mix(caused: Sequence[ObservedRebalance], parts: Sequence[tuple[str, int]]) -> str:
    if parts:
        rest = len(caused) - sum(number for _, number in parts)
        named = [f"{number} by {name}" for name, number in parts]
        return f"What they came from: {names([*named, *([f'{rest} by others'] if rest else [])], 6)}."
    began = Counter(each.cause for each in caused).most_common()
    return f"What began them: {names((f'{_BEGAN.get(cause, _UNKNOWN)} ({number})' for cause, number in began), 4)}."


_UNKNOWN: Final = "an unknown cause"


def _advice(
    causes: Causes,
    storms: Sequence[Sequence[ObservedRebalance]],
    caused: Sequence[ObservedRebalance],
) -> tuple[str | None, str]:
    """The setting to change, and what else to do."""
    began = Counter(each.cause for each in caused)
    meanwhile = go_on_meanwhile(causes.history)
    cold = [each for chain in storms if _is_cold_start(chain) for each in chain]
    if len(cold) >= len(caused) / 2:
        return "group.initial.rebalance.delay.ms", (
            "Members start one after the other, and each makes the group rebalance. group.initial.rebalance.delay.ms "
            "of the broker (3000 by default) lets a group that was empty wait for them; start them together."
            f"{meanwhile}"
        )
    kinds = Counter(cause.kind for each in caused if (cause := causes.of_rebalances.get(each.rebalance_id)) is not None)
    named = sum(number for kind, number in kinds.items() if kind not in (CHANGED, RESTARTED, SUBSCRIBED))
    if named >= LEAST_PART * len(caused):
        return None, "Its parts have findings of their own."
    newcomers = began["join-new"] + began["leave"]
    if began["leave"] and began["join-new"] and newcomers >= len(caused) / 2:
        return None, (
            "Members come and go. If that is an autoscaler, make it slower than a rebalance (a stabilisation window, "
            "and no scaling down as soon as the lag is gone); if it is restarts, "
            f"{'set group.instance.id' if can_be_static(causes.history) else 'make them at one time'}.{meanwhile}"
        )
    if began["join-new"] >= len(caused) / 2:
        return (
            None,
            f"Members join one after the other, and each makes the group rebalance: start them together.{meanwhile}",
        )
    if began["rejoin-metadata"] >= len(caused) / 2:
        return None, "Members joined again with something changed: find out why their subscriptions change."
    return None, "Look at the other findings: a storm has a cause."
