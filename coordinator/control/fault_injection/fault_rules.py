"""Faults: rules that requests are matched with, in the order in which the rules were made. The first match acts.

A rule's fields are AND-ed, and a field that is not given matches anything. Names are those of franz-go's ``kfake``
where it has them: ``keys`` (``ControlKey``), ``node`` (``CurrentNode``), ``count`` -1 keeps a rule (``KeepControl``),
``pause`` sleeps (``SleepControl``).
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from rejoin.coordinator.control.fault_injection.bodies import Body, Numbers, Several, Texts, one_level_up
from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import has_throttle
from rejoin.protocol.message import Request
from rejoin.protocol.registry import APIS, BY_KEY, BY_NAME, BY_REQUEST, Api, api_named
from rejoin.protocol.request_contents.entries import Wanted
from rejoin.protocol.request_contents.traits import Traits, entities_of
from rejoin.protocol.types import Entity
from rejoin.protocol.validation import nearest, shown

UNTIL_REMOVED: Final = -1
LONGEST_LATENCY_MS: Final = 86_400_000

WrongValue = Literal["offset_zero", "stale_leader", "older_epoch", "old_assignment", "flipped_bit"]
WRONG_IN: Final[dict[WrongValue, tuple[str, ...]]] = {
    "offset_zero": ("ListOffsets", "OffsetFetch"),
    "stale_leader": ("Metadata",),
    "older_epoch": ("Metadata", "ListOffsets", "OffsetFetch"),
    "old_assignment": ("SyncGroup",),
    "flipped_bit": ("Fetch",),
}
"""The APIs whose answers can have each wrong value."""

When = Literal["before", "after", "drop_request", "drop_response", "delay", "observe"]


def _api(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError("expected the name or number of an API, as JoinGroup or 11")
    if isinstance(value, str):
        found = api_named(value)
        if found is None:
            raise ValueError(f"there is no API {value!r}{nearest(value, BY_NAME)}")
        return found.name
    if value not in BY_KEY:
        raise ValueError(f"there is no API number {value}; expected one of {', '.join(map(str, BY_KEY))}")
    return BY_KEY[value].name


def _error(value: object) -> object:
    if isinstance(value, ErrorCode) or value is None:
        return value
    names = ErrorCode.__members__
    if isinstance(value, str):
        found = names.get(value.upper())
        if found is None:
            others = (name for name in names if name != ErrorCode.NONE.name)
            raise ValueError(f"there is no error {value!r}{nearest(value, others)}")
        return found
    if isinstance(value, int) and not isinstance(value, bool) and value in set(ErrorCode):
        return ErrorCode(value)
    raise ValueError(f"there is no error {value!r}; expected a name or a number of Kafka's")


def _two(value: object, check: ValidatorFunctionWrapHandler) -> object:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"expected two numbers, as [50, 500], not {shown(value)}")
    return check(tuple(value))


ApiName = Annotated[str, BeforeValidator(_api)]
ErrorOrNone = Annotated[ErrorCode | None, BeforeValidator(_error)]
ApiNames = Annotated[tuple[ApiName, ...], Several]
Latency = Annotated[float, Field(ge=0, le=LONGEST_LATENCY_MS)]
_TwoLatencies = Annotated[tuple[Latency, Latency], WrapValidator(_two)]


class Distribution(Body):
    """Latencies in ms, drawn anew for each request; exactly one of the four is given."""

    uniform: _TwoLatencies | None = Field(default=None, description="least and most")
    normal: _TwoLatencies | None = Field(default=None, description="mean and deviation")
    exponential: Latency | None = Field(default=None, description="mean")
    values: Annotated[tuple[Latency, ...], Several] | None = Field(
        default=None, min_length=1, description="one after the other, and again from the first"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of uniform, normal, exponential and values")
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise ValueError(f"uniform: expected the least latency before the most, not {list(self.uniform)}")
        return self

    def draw(self, random: Random, drawn: int) -> float:
        """One latency; ``drawn`` is how many there were before."""
        if self.uniform is not None:
            return random.uniform(*self.uniform)
        if self.normal is not None:
            return max(0.0, random.gauss(*self.normal))
        if self.exponential is not None:
            return random.expovariate(1 / self.exponential) if self.exponential else 0.0
        assert self.values is not None, "one of the four is given"
        return self.values[drawn % len(self.values)]


def _kind_of_latency(value: object) -> str:
    return "distribution" if isinstance(value, (dict, Distribution)) else "number"


LatencyOrDistribution = Annotated[
    Annotated[Latency, Tag("number")] | Annotated[Distribution, Tag("distribution")],
    Discriminator(_kind_of_latency),
    WrapValidator(one_level_up),
]


_NAMED_BY: Final = {
    "group": ("groups", {Entity.GROUP_ID, Entity.COORDINATOR_KEY, Entity.RESOURCE_NAME}),
    "member": ("members", {Entity.MEMBER_ID}),
    "instance": ("group instance ids", {Entity.GROUP_INSTANCE_ID}),
    "transactional_id": ("transactional ids", {Entity.TRANSACTIONAL_ID}),
    "topic": ("topics", {Entity.TOPIC_NAME, Entity.TOPIC_ID, Entity.SUBSCRIPTION, Entity.RESOURCE_NAME}),
    "partitions": ("partitions", {Entity.PARTITION}),
}
"""By field of a rule: what requests must name so that it can match, in words and as entities of their fields."""


_ENTRY_FIELDS: Final = {
    "group": Entity.GROUP_ID,
    "member": Entity.MEMBER_ID,
    "instance": Entity.GROUP_INSTANCE_ID,
    "transactional_id": Entity.TRANSACTIONAL_ID,
    "topic": Entity.TOPIC_NAME,
    "partitions": Entity.PARTITION,
}
"""Fields of a rule that choose entries of a request's lists, and what entries name."""


def is_throttled(api: Api, version: int) -> bool:
    """Whether answers of this version have a field for a throttle."""
    return has_throttle(api.response, version)


class FaultRule(Body):
    """Which requests a fault applies to, and what becomes of them. One value may stand for a list of one."""

    keys: ApiNames | None = Field(default=None, description="APIs by name or number, as JoinGroup or 11")
    group: Texts | None = Field(default=None, description="group ids")
    member: Texts | None = Field(default=None, description="member ids")
    instance: Texts | None = Field(default=None, description="group instance ids")
    client_id: Texts | None = Field(default=None, description="client ids")
    node: Numbers | None = Field(default=None, description="ids of the brokers that receive the request")
    transactional_id: Texts | None = Field(default=None, description="transactional ids")
    topic: Texts | None = Field(
        default=None, description="topics of the request, by name or id, or of its subscription"
    )
    partitions: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Several] | None = Field(
        default=None, description="partitions named in the request, of these topics"
    )
    version: Numbers | None = Field(default=None, description="versions of the request")
    count: int = Field(
        default=0, ge=-1, description="number of requests; 0 stands for 1, and -1 for all until the rule is removed"
    )
    when: When | None = Field(
        default=None,
        description="before: not applied; after: applied, then failed; drop_request: not applied, no answer; "
        "drop_response: applied, no answer; delay: applied later; observe: counted only. "
        "Default: before with an error, after with cut_after_bytes or bytes_per_second alone, else delay",
    )
    error: ErrorOrNone = Field(default=None, description="answer with this error, by name or number")
    latency_ms: LatencyOrDistribution | None = Field(
        default=None, description="how long to hold the request or the answer, on the node's clock"
    )
    pause: bool = Field(default=False, description="hold every matching request until the rule is released")
    seed: int = Field(default=0, description="seed of the random latencies")
    cut_after_bytes: int | None = Field(
        default=None, ge=0, description="close the connection after this many bytes of the answer"
    )
    reset: bool = Field(default=False, description="with cut_after_bytes: a reset (RST) instead of a close (FIN)")
    bytes_per_second: int | None = Field(
        default=None, ge=1, description="write the answer at this pace, on the node's clock"
    )

    wrong: WrongValue | None = Field(
        default=None,
        description="answer with a wrong value: offset_zero (ListOffsets, OffsetFetch), stale_leader (Metadata), "
        "older_epoch (Metadata, ListOffsets, OffsetFetch), old_assignment (SyncGroup), flipped_bit (Fetch)",
    )
    throttle_ms: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="throttleTimeMs of the answer, which is not delayed"
    )

    @model_validator(mode="after")
    def _wrong_value(self) -> Self:
        if self.wrong is None:
            return self
        if self.error is not None or self.effective_when != "after":
            raise ValueError("wrong changes an answer; leave out error and when")
        known = WRONG_IN[self.wrong]
        if self.keys is not None and not set(self.keys) <= set(known):
            raise ValueError(f"wrong {self.wrong} is for {' and '.join(known)}, not {', '.join(self.keys)}")
        return self

    @model_validator(mode="after")
    def _sense(self) -> Self:
        when = self.effective_when
        if when == "observe":
            self._check_observes()
        held = self.pause or self.latency_ms is not None
        if self.reset and self.cut_after_bytes is None:
            raise ValueError("reset needs cut_after_bytes; 0 resets the connection before the answer")
        if self.when is None and when == "delay" and not held:
            raise ValueError(
                "a rule needs something to do: error, wrong, latency_ms, pause, cut_after_bytes, bytes_per_second, "
                "throttle_ms, or when with drop_request or drop_response"
            )
        if self.error is ErrorCode.NONE:
            raise ValueError("error: NONE is no error; leave error out")
        if when == "before" and self.error is None:
            raise ValueError("when before needs an error to answer with")
        faulty = self.is_delivered_faultily
        changed = self.wrong is not None or self.throttle_ms is not None
        if when == "after" and self.error is None and not held and not faulty and not changed:
            raise ValueError(
                "when after needs an error to answer with, a latency_ms or pause to hold the answer, "
                "cut_after_bytes or bytes_per_second to deliver it, or throttle_ms"
            )
        if self.throttle_ms is not None and when in ("drop_request", "drop_response"):
            raise ValueError(f"when {when} answers nothing; leave out throttle_ms")
        if when == "delay" and not held:
            raise ValueError("when delay needs latency_ms or pause; without either the rule has no effect")
        if when in ("drop_request", "drop_response") and faulty:
            raise ValueError(f"when {when} answers nothing; leave out cut_after_bytes and bytes_per_second")
        if when in ("drop_request", "drop_response", "delay") and self.error is not None:
            raise ValueError(f"when {when} answers with no error; leave error out, or say before or after")
        return self

    def _check_observes(self) -> None:
        """Refuse a rule that shall change nothing and names a change."""
        acting = ("error", "latency_ms", "pause", "cut_after_bytes", "bytes_per_second", "wrong", "throttle_ms")
        named = [name for name in acting if getattr(self, name) is not None and getattr(self, name) is not False]
        if named:
            raise ValueError(f"when observe changes nothing; leave out {' and '.join(named)}")

    @model_validator(mode="after")
    def _can_match(self) -> Self:
        for name, value in self:
            if value == ():
                raise ValueError(f"{name}: expected at least one; leave {name} out to match any")
        keys = self.keys or (WRONG_IN[self.wrong] if self.wrong is not None else ())
        apis = [BY_NAME[name] for name in keys] or list(APIS)
        for version in self.version or ():
            if not any(api.supports(version) for api in apis):
                there = ", ".join(f"{api.name} has versions {api.min_version} to {api.max_version}" for api in apis)
                raise ValueError(f"version: {there if keys else 'no API has such a version'}, not {version}")
        if keys:
            self._check_named(apis)
            self._check_throttle(apis)
        return self

    def _check_throttle(self, apis: list[Api]) -> None:
        """Refuse a throttle for answers that have no field for it."""
        if self.throttle_ms is not None and not any(
            is_throttled(api, version)
            for api in apis
            for version in self.version or range(api.min_version, api.max_version + 1)
        ):
            names = " or ".join(api.name for api in apis)
            raise ValueError(
                f"throttle_ms: no answer to {names} has throttleTimeMs in this version; leave throttle_ms out"
            )

    def _check_named(self, apis: list[Api]) -> None:
        """Refuse a rule for what none of these APIs names. Where some of them name it, the others never match."""
        left = [
            (api, version)
            for api in apis
            for version in range(api.min_version, api.max_version + 1)
            if self.version is None or version in self.version
        ]
        for field, (what, entities) in _NAMED_BY.items():
            if getattr(self, field) is not None:
                naming = [each for each in left if not entities.isdisjoint(entities_of(each[0].request, each[1]))]
                if not naming:
                    names = " or ".join(dict.fromkeys(api.name for api, _ in left))
                    versions = "" if self.version is None else f" of version {' or '.join(map(str, self.version))}"
                    raise ValueError(f"{field}: no {names} request{versions} names {what}; leave {field} out")
                left = naming

    @property
    def effective_when(self) -> When:
        """``when``, or what its absence means."""
        if self.when is not None:
            return self.when
        if self.error is not None:
            return "before"
        if self.wrong is not None:
            return "after"
        if self.throttle_ms is not None and self.latency_ms is None and not self.pause:
            return "after"
        return "after" if self.is_delivered_faultily and self.latency_ms is None and not self.pause else "delay"

    @property
    def observes(self) -> bool:
        """Whether requests are counted and left as they are; other rules apply to them still."""
        return self.when == "observe"

    @property
    def is_delivered_faultily(self) -> bool:
        """Whether answers are slow, or cut."""
        return self.cut_after_bytes is not None or self.bytes_per_second is not None

    @property
    def limit(self) -> int | None:
        """How many requests it applies to at most, or none."""
        return None if self.count == UNTIL_REMOVED else max(self.count, 1)

    def matches(self, request: Request, traits: Traits, context: Context, node_id: int) -> bool:
        """Whether a request is one of those meant."""
        return (
            (self.keys is None or BY_REQUEST[type(request)].name in self.keys)
            and (self.wrong is None or BY_REQUEST[type(request)].name in WRONG_IN[self.wrong])
            and (self.group is None or not traits.groups.isdisjoint(self.group))
            and (self.member is None or not traits.members.isdisjoint(self.member))
            and (self.transactional_id is None or not traits.transactional_ids.isdisjoint(self.transactional_id))
            and (self.throttle_ms is None or is_throttled(BY_REQUEST[type(request)], context.api_version))
            and (self.instance is None or not traits.instances.isdisjoint(self.instance))
            and (self.client_id is None or context.client_id in self.client_id)
            and (self.node is None or node_id in self.node)
            and (self.version is None or context.api_version in self.version)
            and self._matches_places(traits)
        )

    @property
    def wanted(self) -> Wanted:
        """Names that an entry of a request must have for the rule to apply to it."""
        fields = {name: getattr(self, name) for name in _ENTRY_FIELDS}
        return {_ENTRY_FIELDS[name]: values for name, values in fields.items() if values is not None}

    def _matches_places(self, traits: Traits) -> bool:
        if self.partitions is not None:
            return any(
                partition in self.partitions and (self.topic is None or topic in self.topic)
                for topic, partition in traits.partitions
            )
        return self.topic is None or not traits.topics.isdisjoint(self.topic)
