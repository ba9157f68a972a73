"""The outcome of a script on a broker: equal, different in some fields, or not applicable, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from rejoin.conform.comparison.compare import CLOSED, NO_ANSWER, Difference
from rejoin.conform.comparison.exchanges import TIME

KINDS: Final = {
    "error": "another error, no answer, or a closed connection",
    "field": "another value of a field",
    "order": "the same entries in another order",
    "time": "answered much earlier or later, or another time in an answer",
}
ITS_OWN: Final = frozenset(
    {"errorMessage", "clusterId", "configs", "apiKeys", "supportedFeatures", "finalizedFeatures"}
    | {"finalizedFeaturesEpoch", "port", "host", "nodeId", "leaderId", "controllerId", "replicaNodes", "isrNodes"}
    | {"topicId", "clientHost", "authorizedOperations", "topicAuthorizedOperations", "leaderEpoch"}
    | {"throttleTimeMs", "clusterAuthorizedOperations", "configSource", "isDefault"}
)
"""Fields that another cluster may well have otherwise."""
SETTINGS_OF_NEW_TOPICS: Final = re.compile(r"topics\.\d+\.configs\.")


@dataclass(frozen=True)
class ClassifiedDifference:
    """A difference, and its kind."""

    kind: str
    step: int
    api: str
    version: int
    path: str
    kafka: Any
    other: Any
    request: Any = None

    @property
    def key(self) -> str:
        """Its name in a baseline: where it is, without values, some of which a broker draws."""
        return f"{self.step} {self.api} {self.path or 'answer'} {self.kind}"

    def __str__(self) -> str:
        where = f"step {self.step}, {self.api} v{self.version}, {self.path or 'answer'}"
        return f"{self.kind}: {where}: Kafka {shown(self.kafka)}, here {shown(self.other)}"


@dataclass(frozen=True)
class ScriptOutcome:
    """A script with its differences, or with the reason for which it was not played."""

    of_set: str
    name: str
    differences: tuple[ClassifiedDifference, ...] = ()
    not_applicable: str | None = None
    seconds: float = 0.0
    known: int = 0
    """Differences that a baseline has; they are not among the others."""
    is_late: bool = False
    """Whether the script was played much later than in the recording."""

    @property
    def full_name(self) -> str:
        return f"{self.of_set}/{self.name}"

    @property
    def is_doubtful(self) -> bool:
        """Whether a machine that was busy may have brought about its differences."""
        kinds = {one.kind for one in self.differences}
        return kinds == {"time"} or (bool(kinds) and self.is_late)

    @property
    def word(self) -> str:
        if self.not_applicable is not None:
            return "not applicable"
        return "different" if self.differences else "known" if self.known else "equal"


def classified(found: Iterable[Difference]) -> tuple[ClassifiedDifference, ...]:
    """The differences that count, each with its kind; those in a cluster's own fields are left out."""
    return tuple(
        ClassifiedDifference(
            kind_of(one), one.number, one.api, one.version, one.path, one.kafka, one.other, one.request
        )
        for one in found
        if one.path.rsplit(".", 1)[-1] not in ITS_OWN and not SETTINGS_OF_NEW_TOPICS.match(one.path)
    )


def kind_of(one: Difference) -> str:
    """The kind of a difference."""
    if one.path.endswith("errorCode") or not one.path or {CLOSED, NO_ANSWER} & {str(one.kafka), str(one.other)}:
        return "error"
    if one.path == "at" or all(isinstance(value, str) and TIME.fullmatch(value) for value in (one.kafka, one.other)):
        return "time"
    if isinstance(one.kafka, list) and isinstance(one.other, list):
        return "order" if sorted(map(repr, one.kafka)) == sorted(map(repr, one.other)) else "field"
    return "field"


def shown(value: Any, longest: int = 200) -> str:
    """A value in a line."""
    text = value if isinstance(value, str) and value.startswith("(") else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
