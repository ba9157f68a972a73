"""Faults: rules that requests are held against, in the order in which the rules were made. The first that matches acts.

A rule's fields are AND-ed, and a field that is not given matches anything. Names are those of franz-go's ``kfake``
where it has them: ``keys`` (``ControlKey``), ``node`` (``CurrentNode``), ``count`` -1 keeps a rule (``KeepControl``),
``pause`` sleeps (``SleepControl``).
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.registry import APIS, BY_KEY, BY_NAME, BY_REQUEST, Api, api_named
from rejoin.protocol.traits import Named, Traits, entities_of, traits_of
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

When = Literal["before", "after", "drop_request", "drop_response", "delay"]


def _one_or_several(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """A list, or one value that stands for a list of one."""
    return check(tuple(value)) if isinstance(value, (list, tuple)) else one_level_up((value,), check)


def one_level_up(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """Check a value; the paths of errors leave out their first part, which is not in the JSON that was given."""
    try:
        return check(value)
    except ValidationError as problem:
        errors = [
            InitErrorDetails(type=each["type"], loc=each["loc"][1:], input=each["input"], ctx=dict(each.get("ctx", {})))
            for each in problem.errors(include_url=False)
        ]
        raise ValidationError.from_exception_data(problem.title, errors) from None


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


_Several = WrapValidator(_one_or_several)


def _two(value: object, check: ValidatorFunctionWrapHandler) -> object:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"expected two numbers, as [50, 500], not {shown(value)}")
    return check(tuple(value))


def as_tuple(value: object) -> object:
    """A list of JSON as the tuple that it stands for."""
    return tuple(value) if isinstance(value, list) else value


Texts = Annotated[tuple[str, ...], _Several]
Numbers = Annotated[tuple[int, ...], _Several]
ApiName = Annotated[str, BeforeValidator(_api)]
ApiNames = Annotated[tuple[ApiName, ...], _Several]
Latency = Annotated[float, Field(ge=0, le=LONGEST_LATENCY_MS)]
_TwoLatencies = Annotated[tuple[Latency, Latency], WrapValidator(_two)]

LARGEST: Final = 2**63 - 1


class Body(BaseModel):
    """What is posted to the control API: nothing unknown, nothing of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _within_64_bits(cls, given: Any) -> Any:
        """Answers repeat what was given, and JSON of other programs has no larger numbers."""
        for name, value in given.items() if isinstance(given, dict) else ():
            for number in value if isinstance(value, list) else [value]:
                if isinstance(number, int) and not -LARGEST <= number <= LARGEST:
                    raise ValueError(f"{name}: expected a number from {-LARGEST} to {LARGEST}")
        return given


class Distribution(Body):
    """Latencies in ms, drawn anew for each request; exactly one of the four is given."""

    uniform: _TwoLatencies | None = Field(default=None, description="least and most")
    normal: _TwoLatencies | None = Field(default=None, description="mean and deviation")
    exponential: Latency | None = Field(default=None, description="mean")
    values: Annotated[tuple[Latency, ...], _Several] | None = Field(
        default=None, min_length=1, description="one after the other, and again from the first"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of uniform, normal, exponential and values")
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise ValueError(f"uniform: expected the least before the most, not {list(self.uniform)}")
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
    "group": ("groups", {Entity.GROUP_ID, Entity.COORDINATOR_KEY}),
    "member": ("members", {Entity.MEMBER_ID}),
    "instance": ("group instance ids", {Entity.GROUP_INSTANCE_ID}),
    "topic": ("topics", {Entity.TOPIC_NAME, Entity.TOPIC_ID, Entity.SUBSCRIPTION}),
    "partitions": ("partitions", {Entity.PARTITION}),
}
"""By field of a rule: what requests must name so that it can match, in words and as entities of their fields."""


class FaultRule(Body):
    """Which requests a fault applies to, and what becomes of them. One value may stand for a list of one."""

    keys: ApiNames | None = Field(default=None, description="APIs by name or number, as JoinGroup or 11")
    group: Texts | None = Field(default=None, description="group ids")
    member: Texts | None = Field(default=None, description="member ids")
    instance: Texts | None = Field(default=None, description="group instance ids")
    client_id: Texts | None = Field(default=None, description="client ids")
    node: Numbers | None = Field(default=None, description="numbers of nodes that are asked")
    topic: Texts | None = Field(
        default=None, description="topics of the request, by name or id, or of its subscription"
    )
    partitions: Annotated[tuple[Annotated[int, Field(ge=0)], ...], _Several] | None = Field(
        default=None, description="partitions named in the request, of these topics"
    )
    version: Numbers | None = Field(default=None, description="versions of the request")
    count: int = Field(default=0, ge=-1, description="how many requests: 0 or 1 one, n so many, -1 until removed")
    when: When | None = Field(
        default=None,
        description="before: not applied; after: applied, then failed; drop_request: not applied, no answer; "
        "drop_response: applied, no answer; delay: applied later. Default: before with an error, "
        "after with cut_after_bytes or bytes_per_second alone, else delay",
    )
    error: Annotated[ErrorCode | None, BeforeValidator(_error)] = Field(
        default=None, description="answer with this error, by name or number"
    )
    latency_ms: LatencyOrDistribution | None = Field(default=None, description="how long, on the node's clock")
    pause: bool = Field(default=False, description="hold every request that matches until the rule is released")
    seed: int = Field(default=0, description="of the latencies that are drawn")
    cut_after_bytes: int | None = Field(
        default=None, ge=0, description="close the connection when so many bytes of the answer are written"
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
        held = self.pause or self.latency_ms is not None
        if self.reset and self.cut_after_bytes is None:
            raise ValueError("reset needs cut_after_bytes; 0 resets the connection before the answer")
        if self.when is None and when == "delay" and not held:
            raise ValueError(
                "a rule needs something to do: error, wrong, latency_ms, pause, cut_after_bytes, bytes_per_second, "
                "or when with drop_request or drop_response"
            )
        if self.error is ErrorCode.NONE:
            raise ValueError("error: NONE is none; leave it out")
        if when == "before" and self.error is None:
            raise ValueError("when before needs an error to answer with")
        faulty = self.is_delivered_faultily
        if when == "after" and self.error is None and not held and not faulty and self.wrong is None:
            raise ValueError(
                "when after needs an error to answer with, a latency_ms or pause to hold the answer, "
                "or cut_after_bytes or bytes_per_second to deliver it"
            )
        if when == "delay" and not held:
            raise ValueError("when delay needs latency_ms or pause; nothing would come of this rule")
        if when in ("drop_request", "drop_response") and faulty:
            raise ValueError(f"when {when} answers nothing; leave out cut_after_bytes and bytes_per_second")
        if when in ("drop_request", "drop_response", "delay") and self.error is not None:
            raise ValueError(f"when {when} answers with no error; leave error out, or say before or after")
        return self

    @model_validator(mode="after")
    def _can_match(self) -> Self:
        for name, value in self:
            if value == ():
                raise ValueError(f"{name}: expected one at least; leave it out for any")
        keys = self.keys or (WRONG_IN[self.wrong] if self.wrong is not None else ())
        apis = [BY_NAME[name] for name in keys] or list(APIS)
        for version in self.version or ():
            if not any(api.supports(version) for api in apis):
                there = ", ".join(f"{api.name} has versions {api.min_version} to {api.max_version}" for api in apis)
                raise ValueError(f"version: {there if keys else 'no API has such a version'}, not {version}")
        if keys:
            self._check_named(apis)
        return self

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
        return "after" if self.is_delivered_faultily and self.latency_ms is None and not self.pause else "delay"

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
            and (self.instance is None or not traits.instances.isdisjoint(self.instance))
            and (self.client_id is None or context.client_id in self.client_id)
            and (self.node is None or node_id in self.node)
            and (self.version is None or context.api_version in self.version)
            and self._matches_places(traits)
        )

    def _matches_places(self, traits: Traits) -> bool:
        if self.partitions is not None:
            return any(
                partition in self.partitions and (self.topic is None or topic in self.topic)
                for topic, partition in traits.partitions
            )
        return self.topic is None or not traits.topics.isdisjoint(self.topic)


def _plain(value: Any) -> Any:
    """A list of one as what is in it."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


class Fault:
    """A rule at work. ``hits`` counts the requests it was applied to; ``held`` those that it holds now."""

    def __init__(self, fault_id: str, rule: FaultRule) -> None:
        self.id = fault_id
        self.rule = rule
        self.hits = 0
        self.held = 0
        self.removed = False
        self.released = False
        self._barrier: list[asyncio.Future[None]] = []
        self._random = Random(rule.seed)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def is_spent(self) -> bool:
        """Whether it applies to nothing any more."""
        return self.removed or (self.rule.limit is not None and self.hits >= self.rule.limit)

    def count_hit(self) -> None:
        """Count a request that matched, and wake the waits for that."""
        self.hits += 1
        for hits, future in self._waiting:
            if self.hits >= hits and not future.done():
                future.set_result(None)

    def latency_ms(self) -> Millis:
        """How long to hold the request that was counted last."""
        latency = self.rule.latency_ms
        if isinstance(latency, Distribution):
            latency = latency.draw(self._random, self.hits - 1)
        return round(latency or 0.0)

    def __repr__(self) -> str:
        rule = self.rule.model_dump(mode="json", exclude_defaults=True)
        rule |= {"when": self.rule.effective_when} | ({"error": self.rule.error.name} if self.rule.error else {})
        fields = ", ".join(f"{name}={_plain(value)}" for name, value in rule.items())
        return f"<fault {self.id}: {fields}; applied {self.hits} times>"

    async def wait(self, hits: int, timeout_ms: int) -> bool:
        """Return when it has so many hits; false when it has not in this (real) time, or was removed."""
        future = asyncio.get_running_loop().create_future()
        entry = (hits, future)
        self._waiting.append(entry)
        try:
            if self.hits < hits and not self.removed:
                async with asyncio.timeout(timeout_ms / 1_000):
                    await future
        except TimeoutError:
            pass
        finally:
            self._waiting.remove(entry)
        return self.hits >= hits

    def at_barrier(self) -> asyncio.Future[None]:
        """What a request waits for that is held until the release."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._barrier.append(future)
        return future

    def release(self) -> int:
        """Open the barrier for good, and let go of what waits there; returns how many that were."""
        self.released = True
        waiting = [future for future in self._barrier if not future.done()]
        self._barrier.clear()
        for future in waiting:
            future.set_result(None)
        return len(waiting)

    def remove(self) -> None:
        """Apply to nothing any more, and let go of what is held."""
        self.removed = True
        self.release()
        for _, future in self._waiting:
            if not future.done():
                future.set_result(None)

    def shown(self) -> dict[str, Any]:
        """The rule as it was given, and how it fares."""
        rule = self.rule.model_dump(mode="json", exclude_unset=True, exclude={"error"})
        if self.rule.error is not None:
            rule["error"] = self.rule.error.name
        rule["when"] = self.rule.effective_when
        return {
            "id": self.id,
            "rule": rule,
            "hits": self.hits,
            "held": self.held,
            "released": self.released,
            "spent": self.is_spent,
        }


class Faults:
    """All rules, in the order in which they were made. Spent ones are kept until removed, for their ``hits``."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._active: list[Fault] = []
        self._made = 0

    def add(self, rule: FaultRule) -> Fault:
        """Make a rule, behind all others."""
        self._made += 1
        fault = Fault(str(self._made), rule)
        self._faults[fault.id] = fault
        self._active.append(fault)
        return fault

    def find(self, fault_id: str) -> Fault | None:
        return self._faults.get(fault_id)

    def all(self) -> list[Fault]:
        return list(self._faults.values())

    def match(self, request: Request, context: Context, node_id: int, named: Named) -> Fault | None:
        """The first rule that matches a request, with the hit counted; none for most requests.

        ``named`` finds the name of a topic by its id.
        """
        if not self._active:
            return None
        traits = traits_of(request, context.api_version, named)
        for fault in self._active:
            if fault.rule.matches(request, traits, context, node_id):
                fault.count_hit()
                if fault.is_spent:
                    self._active.remove(fault)
                return fault
        return None

    def remove(self, fault: Fault) -> None:
        """Forget a rule; what it holds goes on."""
        fault.remove()
        self._faults.pop(fault.id, None)
        if fault in self._active:
            self._active.remove(fault)

    def clear(self) -> None:
        """Forget every rule."""
        for fault in self.all():
            self.remove(fault)
