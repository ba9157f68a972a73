"""One finding: what is wrong with a group, why, what it cost, and the setting to change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline import schemas

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"
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
            "confidence": schemas.EXACT if self.exact else schemas.INFERRED,
        }


def severity_of(cost_s: float) -> str:
    """By what it cost alone."""
    return HIGH if cost_s >= HIGH_FROM_S else MEDIUM if cost_s >= MEDIUM_FROM_S else LOW
