"""Brokers that were away, or gave a group's coordinator to another: one finding for each such event. And racks
that flap with each restart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.findings.causes import OUTAGE, Causes
from rejoin.pipeline.findings.clients.advice import session_timeout
from rejoin.pipeline.findings.clients.share_groups import FAILOVER
from rejoin.pipeline.findings.finding import LOW, RANK, Finding, severity_of
from rejoin.pipeline.findings.formatting import count, names, period, span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedRebalance, all_exact
from rejoin.pipeline.findings.outages import Outage
from rejoin.pipeline.findings.phrases import capital, first, last, share, stood_still, when
from rejoin.pipeline.findings.rules.groups import rack_changes
from rejoin.pipeline.vocabulary import EXACT

NAME: Final = "coordinator-failover"
OF_LOADS: Final = ("slow-load", "load-failed")
SHARED: Final = (NAME, *OF_LOADS)
"""Findings that several groups share."""
ONE_EVENT_MS: Final = 60_000
"""Loads of several groups that are closer together than this come from one event of a broker."""
SHOWN: Final = 6


def coordinator_failover(causes: Causes) -> Iterator[Finding]:
    """The coordinator of the group was away, or another broker took the group over. Consumers go on with what they
    have; commits wait. A group that was in the middle of a rebalance has to begin again, and the generation's number
    comes a second time."""
    numbers = Counter(each.generation_to for each in causes.history.rebalances if each.generation_to is not None)
    twice = sorted(generation for generation, number in numbers.items() if number > 1)
    aborted = [each for each in causes.history.rebalances if each.outcome == "aborted"]
    after = [each for each in causes.begun_by(OUTAGE) if each not in aborted]
    last: int | None = None
    for outage in reversed(causes.outages):
        ends = last if last is not None else causes.history.end_ms + 1
        cut = [each for each in aborted if _is_cut_off(each, outage)]
        began = [each for each in after if outage.to_ms <= each.prepared_at_ms < ends]
        yield _failover(causes, outage, cut, began, twice if len(causes.outages) == 1 else [])
        last = outage.from_ms


def _is_cut_off(rebalance: ObservedRebalance, outage: Outage) -> bool:
    return rebalance.prepared_at_ms <= outage.to_ms <= rebalance.until_ms + ONE_EVENT_MS


def _failover(
    causes: Causes,
    outage: Outage,
    aborted: Sequence[ObservedRebalance],
    after: Sequence[ObservedRebalance],
    twice: Sequence[int],
) -> Finding:
    history = causes.history
    caused = [*aborted, *after]
    members = history.size_at(outage.from_ms - 1)
    lasted = outage.lasted_ms
    away = members * (lasted or 0) / 1_000 if history.run.brokers == 1 else 0.0
    cost = history.cost_s(caused) + away
    again = f" Generation {names(map(str, twice))} came twice." if twice else ""
    # Without a broker's log it is not known how many there are.
    brokers = history.run.brokers if outage.node is not None else 0
    return Finding(
        NAME,
        f"{_title(outage, brokers)}{'' if history.is_share_group else _cut(aborted, after)}",
        f"{_text(outage, brokers, is_share_group=history.is_share_group)} {_outcome(history, aborted, after)}{again}"
        f"{stood_still(history, cost)}",
        cost,
        outage.from_ms,
        max([outage.to_ms, *(each.until_ms for each in caused)]),
        advice=_advice_for(session_timeout(history), "has"),
        numbers={
            "failovers": 1,
            "aborted": len(aborted),
            "rebalances_after": len(after),
            "generations_twice": len(twice),
            "members": members,
            "consumer_seconds": cost,
        }
        | ({"away_ms": lasted} if lasted is not None else {}),
        members=[f"broker {outage.node}"] if outage.node else [],
        rebalances=[each.rebalance_id for each in caused],
        evidence=[each.as_evidence() for each in (outage.stop, outage.load) if each is not None],
        exact=all_exact([outage.load]) and (outage.stop is None or outage.exact),
        severity=None if cost else LOW,
    )


def _title(outage: Outage, brokers: int) -> str:
    lasted = outage.lasted_ms
    if lasted is not None:
        # A broker that was killed may have been silent for a while before; requests are answered all the time.
        about = "" if outage.exact else "about " if outage.is_from_requests else "at most "
        return (
            f"Broker {outage.node} was away for {about}{span(lasted)}"
            if brokers == 1
            else (f"The coordinator was away for {about}{span(lasted)}")
        )
    return f"Broker {outage.node} loaded its groups again" if brokers == 1 and outage.node else "The coordinator moved"


def _cut(aborted: Sequence[ObservedRebalance], after: Sequence[ObservedRebalance]) -> str:
    if aborted:
        return f" and cut off {count(len(aborted), 'rebalance')}"
    return f", then {count(len(after), 'rebalance')}" if after else ", without a rebalance"


def _text(outage: Outage, brokers: int, *, is_share_group: bool) -> str:
    where = f" by broker {outage.node}" if outage.node else ""
    if outage.lasted_ms is None:
        return f"The group was loaded from the offsets log{where} {period(outage.to_ms, outage.to_ms)}: its broker " + (
            "restarted." if brokers == 1 else "went, restarted or gave the partition of __consumer_offsets up."
        )
    text = (
        f"{capital(period(outage.from_ms, outage.to_ms))} the group had no coordinator: for {span(outage.lasted_ms)}, "
        f"until it was loaded from the offsets log{where}."
    )
    if brokers == 1:
        done = "acknowledge" if is_share_group else "commit"
        return f"{text} There is one broker in the logs: meanwhile its consumers could neither fetch nor {done}."
    going_on = f"{text} Consumers go on meanwhile with the partitions that have another leader"
    return f"{going_on}." if is_share_group else f"{going_on}; commits wait."


def _outcome(history: GroupHistory, aborted: Sequence[ObservedRebalance], after: Sequence[ObservedRebalance]) -> str:
    if history.is_share_group:
        return FAILOVER
    if aborted:
        were = "was" if len(aborted) == 1 else "were"
        return (
            f"{count(len(aborted), 'rebalance')} {were} cut off in the middle and had to begin again: a coordinator "
            "keeps no unfinished rebalance."
        )
    if after:
        return (
            f"{count(len(after), 'rebalance')} came of it. A Stable group does not rebalance for that itself: a member "
            "did not find the coordinator within its session, or joined anew."
        )
    return "The group was Stable and stayed so: no rebalance, same generation; only commits had to wait."


def _advice_for(settings: str, verb: str) -> str:
    return (
        f"Nothing to change in the consumers: {settings} only {verb} to be longer than a failover takes. If it happens "
        "often, look at the brokers (restarts, controller, replication of __consumer_offsets)."
    )


# -- one finding for each event, with its groups


def one_for_each_event(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of findings, those of several groups about one event of a broker as one row without a group."""
    found: list[dict[str, Any]] = []
    events: dict[tuple[str, str], list[list[dict[str, Any]]]] = defaultdict(list)
    loads: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(map(dict, rows), key=lambda each: (each["from_ms"] or 0, each["group_id"] or "")):
        if row["finding"] in OF_LOADS:
            loads[row["run_id"], row["finding"], str(row["evidence"])].append(row)
            continue
        if row["finding"] != NAME:
            found.append(row)
            continue
        near = events[row["run_id"], " ".join(row["members"])]
        if near and _loaded_at(row) - _loaded_at(near[-1][-1]) <= ONE_EVENT_MS:
            near[-1].append(row)
        else:
            near.append([row])
    joined = [_joined(event) for near in events.values() for event in near]
    return [*found, *joined, *map(_of_one_load, loads.values())]


def _of_one_load(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row for all groups of one partition of the offsets topic."""
    if len(rows) == 1:
        return rows[0]
    groups = [row["group_id"] for row in rows]
    first = rows[0]
    return {
        **first,
        "group_id": None,
        "groups": groups,
        "title": f"{first['title']}: {count(len(groups), 'group')}",
        "text": f"{first['text'].replace(groups[0], count(len(groups), 'group'))} The groups: {names(groups, SHOWN)}.",
        "numbers": {**dict(first["numbers"]), "groups": float(len(groups))},
        "to_ms": max(row["to_ms"] for row in rows),
    }


def _loaded_at(row: Mapping[str, Any]) -> int:
    at_ms: int = max((each["at_ms"] for each in row["evidence"]), default=row["from_ms"] or 0)
    return at_ms


def _joined(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row for several groups: the worst one's words, the sums of all."""
    if len(rows) == 1:
        return rows[0]
    # Where only the last answers show the stop, the last of them is the nearest to it.
    worst = max(rows, key=lambda row: (row["confidence"] == EXACT, row["from_ms"], row["group_id"]))
    numbers: Counter[str] = Counter()
    for row in rows:
        numbers.update(dict(row["numbers"]))
    away = dict(worst["numbers"]).get("away_ms", 0.0)
    groups = [row["group_id"] for row in rows]
    late = sum(
        (dict(row["numbers"]).get("away_ms", away) - away) * dict(row["numbers"])["members"] for row in rows if away
    )
    score = max(0.0, sum(row["score"] for row in rows) - late / 1_000)
    caused = [each for row in rows for each in row["rebalances"]]
    rebalanced = [f"{row['group_id']} ({len(row['rebalances'])})" for row in rows if row["rebalances"]]
    begin = worst["title"].split(",")[0].split(" and cut")[0]
    outcome = (
        f"{count(len(caused), 'rebalance')} came of it: {names(rebalanced, SHOWN)}."
        if caused
        else "All of them were Stable and stayed so."
    )
    advice = sorted({row["advice"] for row in rows})
    stood = f" Consumers stood still for up to {score:,.0f} s, added up." if score >= 1 else ""
    return {
        **worst,
        "group_id": None,
        "groups": groups,
        "severity": min((severity_of(score), *(row["severity"] for row in rows)), key=lambda each: RANK[each]),
        "score": score,
        "title": f"{begin}: {count(len(groups), 'group')}, {count(len(caused), 'rebalance')}",
        "text": f"{worst['text'].split('. ')[0].replace('the group had', count(len(groups), 'group') + ' had')}. The "
        f"groups: {names(groups, SHOWN)}. {outcome}{stood}",
        "numbers": {**numbers, "consumer_seconds": score, "failovers": 1.0, "groups": float(len(groups))}
        | ({"away_ms": away} if away else {}),
        "from_ms": worst["from_ms"],
        "to_ms": max(row["to_ms"] for row in rows),
        # The settings of several groups may have other names.
        "advice": worst["advice"] if len(advice) == 1 else _advice_for("their session timeouts", "have"),
        "rebalances": caused,
        "evidence": [each for row in rows for each in row["evidence"]][:20],
        "confidence": max(row["confidence"] for row in rows),
    }


def flapping_racks(causes: Causes) -> Iterator[Finding]:
    """A broker restarts, its replicas leave the in-sync racks of the partitions and come back, and the leader takes
    either for a change of the topics: two rebalances around each restart (KAFKA-20778)."""
    history = causes.history
    found = rack_changes(causes)
    caused = list({each.rebalance_id: each for _, pair in found for each in pair}.values())
    if not found or len(caused) < 2 * len(found):
        return
    cost = history.cost_s(caused)
    brokers = list(dict.fromkeys(f"broker {stop.node}" for stop, _ in found))
    yield Finding(
        "flapping-racks",
        f"Probably: each restart of a broker made {history.group_id} rebalance twice, as its racks changed",
        f"{share(history, caused)} {when(caused)} began around {count(len(found), 'restart')} of {names(brokers)}: "
        "once after it went, once after it was back, as the leader's metadata had changed. No topic grew: the "
        f"racks of the replicas had changed.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting="client.rack",
        advice="Consumers with client.rack assign by racks, and see each broker that goes as a change. Update the "
        "clients (KAFKA-20778), or leave client.rack out where fetching from followers is not needed.",
        numbers={
            "restarts": len(found),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        members=brokers,
        rebalances=[each.rebalance_id for each in caused],
        evidence=[stop.as_evidence() for stop, _ in found],
        exact=False,
    )
