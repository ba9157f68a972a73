"""The actions of a scenario as data: deploys, crashes, faults. The runner carries them out."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from rejoin.simulation.scenario.durations import Duration, Length
from rejoin.simulation.scenario.fields import (
    Acls,
    Assignors,
    GroupSettings,
    Names,
    NamesOrNone,
    Part,
    Quotas,
    SettingsByName,
    names_of,
)
from rejoin.simulation.scenario.protocols import Protocol


class RollingDeploy(Part):
    """Restart every consumer of a group, some at a time. A batch goes ``every``; each is ``down`` for so long."""

    group: str
    batch: int = Field(default=1, ge=1)
    every: Duration
    down: Duration
    repeat: Duration = 0
    """Do it again after so long, to the horizon; 0: once."""
    crash: bool = False
    """Kill instead of stopping cleanly."""
    protocol: Protocol | None = None
    """Their ``group.protocol`` from then on; none: as before."""
    count: int | None = Field(default=None, ge=1)
    """Only so many of them; none: all."""
    assignor: Assignors | None = None
    """Their ``partition.assignment.strategy`` from then on; none: as before."""
    rename: bool = False
    """Static members come back with another ``group.instance.id``, as pods of a Deployment do."""


class ScaleGroup(Part):
    """Have a group run this many consumers."""

    group: str
    to: int = Field(ge=0, le=10_000)
    every: Duration = 0


class Autoscale(Part):
    """Scale a group by its lag: one consumer for each so many records behind, within bounds.

    After a change nothing is changed for ``cooldown``.
    """

    group: str
    min: int = Field(default=1, ge=0)
    max: int = Field(ge=1)
    lag_per_consumer: int = Field(ge=1)
    every: Length = 15_000
    cooldown: Duration = 0


class CrashConsumers(Part):
    """Kill consumers; they start again after ``down``, or never."""

    who: Names
    down: Duration | None = None


class StopConsumers(Part):
    """Stop consumers cleanly; they start again after ``down``, or never."""

    who: Names
    down: Duration | None = None


class PauseProcesses(Part):
    """Pause consumers or nodes, as a long garbage collection does."""

    who: Names
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class HangHandler(Part):
    """The user's code hangs; heartbeats continue."""

    who: Names
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CutOff(Part):
    """Consumers cannot reach nodes. ``nodes`` empty: none of them."""

    who: Names
    nodes: Annotated[tuple[str, ...], BeforeValidator(names_of)] = ()
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ResetConnections(Part):
    """Every connection of these consumers breaks, once; they may connect again at once."""

    who: Names


class LoseMessages(Part):
    """Connections break: chances for each message, before a request arrives and before its response does."""

    requests: float = Field(default=0.0, ge=0.0, le=1.0)
    answers: float = Field(default=0.0, ge=0.0, le=1.0)
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class DelayRequest(Part):
    """The next request of this kind takes so long to arrive, even when its sender has given up and connected anew."""

    who: Names
    request: Literal["Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class SlowLog(Part):
    """The offsets log takes longer, or refuses appends with an error."""

    slower: Duration = 0
    error: Literal["NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR", "MESSAGE_TOO_LARGE"] | None = None
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Failover(Part):
    """A group's coordinator moves: its node crashes and starts again after ``down``; without, it resigns.

    ``zombie``: how long the old one still believes that it leads; not with leases, where it knows by its own clock.
    ``when``: wait until the group is in this state.
    """

    group: str
    down: Duration = 0
    zombie: Duration = 0
    when: Literal["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable"] | None = None


class MoveLeaders(Part):
    """Other nodes lead the partitions of a real log. ``zombie``: how long the old ones still believe that they lead."""

    topic: str
    zombie: Duration = 0


class RestartNodes(Part):
    """Nodes are killed at one instant and start again after ``down``. ``nodes`` empty: all of them."""

    nodes: Annotated[tuple[str, ...], BeforeValidator(names_of)] = ()
    down: Duration
    settings: SettingsByName = Field(default={})
    """Settings under Kafka's names that they start again with, where these change."""


class StoreOutage(Part):
    """Nodes cannot reach the store of leases and logs. ``nodes`` empty: none of them, as if it were down."""

    nodes: Annotated[tuple[str, ...], BeforeValidator(names_of)] = ()
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ConfigureGroup(Part):
    """A group gets settings of its own, as an operator gives them (IncrementalAlterConfigs)."""

    group: str
    settings: GroupSettings = Field(min_length=1)


class ChangeAcls(Part):
    """An administrator creates and deletes ACLs, as ``deny User:app:READ:group=orders-app``."""

    create: Acls = ()
    delete: Acls = ()


class ChangeQuotas(Part):
    """An administrator sets or removes limits, as ``client-id=shop producer_byte_rate=1000``."""

    limits: Quotas


class GrowTopic(Part):
    """A topic gets more partitions."""

    topic: str
    to: int = Field(ge=1, le=100_000)


class DeleteTopic(Part):
    """A topic is deleted, with its records and the offsets that are committed for it."""

    topic: str


class ChangeSubscription(Part):
    """Consumers subscribe to other topics, or to those that match a regular expression, from now on."""

    who: Names
    topics: NamesOrNone = ()
    regex: str | None = None

    @model_validator(mode="after")
    def _topics_or_regex(self) -> Self:
        if bool(self.topics) == (self.regex is not None):
            raise ValueError("expected either topics or regex")
        return self


class EnforceRebalance(Part):
    """The application calls enforceRebalance: the consumer joins again with its next poll."""

    who: Names
    every: Length = 1_000
    times: int = Field(default=1, ge=1)
    reason: str = ""


class FlapConsumer(Part):
    """A consumer is killed and started again, over and over."""

    who: str
    every: Length
    down: Duration
    times: int = Field(ge=1)


class StaleHeartbeats(Part):
    """Another process heartbeats with a member's id and an epoch (or generation) that the member does not have."""

    who: Names
    every: Length
    times: int = Field(ge=1)


class OutsideCommits(Part):
    """A process that assigns itself partitions commits under the id of a group, as none of its members."""

    group: str
    every: Length
    times: int = Field(ge=1)


class RecordOfGroup(Part):
    """A record that a member of a share group holds."""

    group: str
    topic: str
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)


class ExpireLock(RecordOfGroup):
    """The lock of a record runs out at once. A batch in one state has one lock."""


class ReleaseRecord(RecordOfGroup):
    """The handler of the member that holds a record gives it back at once."""


class DuplicateInstance(Part):
    """A second process starts with the group instance id of a consumer that runs."""

    who: str
    length: Duration = Field(default=0, alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ScheduledAction(Part):
    """One event of the scenario: when, and exactly one action.

    With ``on_average_every`` it happens at random instants, from ``at`` until ``until`` or the horizon: the gaps are
    exponential, with this mean.
    """

    at: Duration
    until: Duration | None = None
    on_average_every: Length | None = None
    deploy: RollingDeploy | None = None
    scale: ScaleGroup | None = None
    autoscaler: Autoscale | None = None
    crash: CrashConsumers | None = None
    stop: StopConsumers | None = None
    pause: PauseProcesses | None = None
    stuck: HangHandler | None = None
    cut: CutOff | None = None
    reset: ResetConnections | None = None
    loss: LoseMessages | None = None
    delay: DelayRequest | None = None
    slow_log: SlowLog | None = None
    failover: Failover | None = None
    move: MoveLeaders | None = None
    restart: RestartNodes | None = None
    outage: StoreOutage | None = None
    configure: ConfigureGroup | None = None
    acls: ChangeAcls | None = None
    quotas: ChangeQuotas | None = None
    grow: GrowTopic | None = None
    delete_topic: DeleteTopic | None = None
    subscribe: ChangeSubscription | None = None
    enforce: EnforceRebalance | None = None
    flap: FlapConsumer | None = None
    duplicate: DuplicateInstance | None = None
    stale_heartbeats: StaleHeartbeats | None = None
    outside_commits: OutsideCommits | None = None
    expire_lock: ExpireLock | None = None
    release: ReleaseRecord | None = None

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            actions = "nothing" if not given else " and ".join(given)
            raise ValueError(f"says {actions}; expected exactly one of {', '.join(KINDS)} beside 'at'")
        if self.until is not None and self.on_average_every is None:
            raise ValueError("says 'until' without 'on_average_every'; a single event ends with its action")
        return self

    @property
    def kind(self) -> str:
        """The key of the action."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def action(self) -> Any:
        """The action."""
        return getattr(self, self.kind)


KINDS: Final = tuple(name for name in ScheduledAction.model_fields if name not in {"at", "until", "on_average_every"})
