"""One finding: what is wrong with a group, why, what it cost, and the setting to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rejoin.pipeline.findings.clients.table import POLL_INTERVAL, POLL_RECORDS, REBALANCE_TIMEOUT, SESSION_TIMEOUT
from rejoin.pipeline.findings.formatting import names
from rejoin.pipeline.vocabulary import EXACT, INFERRED

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"
LONGER: Final = "longer"
SHORTER: Final = "shorter"
RANK: Final = {HIGH: 0, MEDIUM: 1, LOW: 2}

HIGH_FROM_S: Final = 60.0
"""Consumer-seconds from which a finding is of high severity: a consumer that stood still for a minute, or six for ten
seconds."""
MEDIUM_FROM_S: Final = 5.0
MOST_EVIDENCE: Final = 20
"""Rows of evidence that a finding carries at the most."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the table ``findings``, but for the run, the group and the day. ``cost_s`` is in consumer-seconds."""

    finding: str
    title: str
    text: str
    cost_s: float
    from_ms: int | None
    to_ms: int | None
    setting: str | None = None
    advice: str | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    rebalances: list[str] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    exact: bool = True
    severity: str | None = None
    """Without it the costs decide."""
    changes: dict[str, str] = field(default_factory=dict)
    """Timeout to ``longer`` or ``shorter``: which way the advice would change it."""

    def row(self) -> dict[str, Any]:
        """The columns that the rule fills."""
        return {
            "finding": self.finding,
            "severity": self.severity or severity_of(self.cost_s),
            "score": round(self.cost_s, 3),
            "title": self.title,
            "text": self.text,
            "setting": self.setting,
            "advice": self.advice,
            "numbers": {name: float(value) for name, value in self.numbers.items()},
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "members": self.members,
            "rebalances": self.rebalances,
            "evidence": self.evidence[:MOST_EVIDENCE],
            "confidence": EXACT if self.exact else INFERRED,
        }


def severity_of(cost_s: float) -> str:
    """By what it cost alone."""
    return HIGH if cost_s >= HIGH_FROM_S else MEDIUM if cost_s >= MEDIUM_FROM_S else LOW


# --- findings of one group that would change one timeout in opposite ways

_OF_SESSIONS: Final = (
    "With a longer one a pause passes without a rebalance, with a shorter one the partitions of a member that died "
    "wait for less time"
)
_OF_POLLS: Final = (
    "With a longer one a slow member stays, and no record is processed twice, but a rebalance waits that long for a "
    "member that is stuck; with a shorter one it is the other way round. Shorter batches help with both (a smaller "
    f"{POLL_RECORDS})"
)
_TRADE_OFFS: Final = {
    POLL_INTERVAL: _OF_POLLS,
    REBALANCE_TIMEOUT: _OF_POLLS,
    SESSION_TIMEOUT: _OF_SESSIONS,
    **{f"group.{kind}.session.timeout.ms": _OF_SESSIONS for kind in ("consumer", "share", "streams")},
}
_OPPOSITE: Final = {LONGER: SHORTER, SHORTER: LONGER}


def with_trade_offs(found: Sequence[Finding]) -> list[Finding]:
    """The findings of one group, those that contradict others with a sentence more: both are right on their own, and
    the reader of one has to know what it costs to follow it."""
    return [_with_trade_offs(each, found) for each in found]


def _with_trade_offs(finding: Finding, others: Sequence[Finding]) -> Finding:
    sentences = [finding.advice or ""]
    for setting, way in finding.changes.items():
        against = [each.title for each in others if each.changes.get(setting) == _OPPOSITE[way]]
        if against:
            titles = names(f'"{title}"' for title in against)
            asks = "ask" if len(set(against)) > 1 else "asks"
            sentences.append(
                f"This is a trade-off: {titles} {asks} for a {_OPPOSITE[way]} {setting}. {_TRADE_OFFS[setting]}."
            )
    return replace(finding, advice=" ".join(sentences)) if sentences[1:] else finding
