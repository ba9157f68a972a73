"""The JSON files of `rejoin reassign` and `rejoin elect`: partitions with replicas, topics, partitions.

Source: Kafka's ReassignPartitionsCommand and LeaderElectionCommand (tools), which ignore unknown fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr, ValidationError

from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.tools.connecting import ToolRefusal
from rejoin.files import read_text
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.validation import sentence

VERSION: Final = 1
ANY_DIRECTORY: Final = "any"

H = TypeVar("H", bound=Hashable)


class _FilePart(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _NamedTopic(_FilePart):
    topic: StrictStr


class _NamedPartition(_NamedTopic):
    partition: StrictInt

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class _MovedPartition(_NamedPartition):
    replicas: tuple[StrictInt, ...]
    log_dirs: tuple[StrictStr, ...] | None = None


class _MovesFile(_FilePart):
    version: StrictInt = VERSION
    partitions: tuple[_MovedPartition, ...] = ()


class _TopicsFile(_FilePart):
    version: StrictInt = VERSION
    topics: tuple[_NamedTopic, ...] = ()


class _ElectionFile(_FilePart):
    partitions: tuple[_NamedPartition, ...]


F = TypeVar("F", bound=_FilePart)


def replicas_of(path: str) -> list[tuple[TopicPartition, tuple[int, ...]]]:
    """The partitions of a reassignment file with their replicas, in its order. Raises UsageError, ToolRefusal."""
    found = _parsed("--reassignment-json-file", path, _MovesFile)
    _check_version(found.version)
    for each in found.partitions:
        dirs = each.log_dirs
        if dirs is None:
            continue
        if len(dirs) != len(each.replicas):
            lists = f"{_listed(each.replicas)} is different from size of log dirs list {_listed(dirs)}"
            raise ToolRefusal(f"Size of replicas list {lists} for partition {each.key}")
        if any(one != ANY_DIRECTORY for one in dirs):
            raise ToolRefusal(f"log_dirs of {each.key}: directories are not moved; expected any for each")
    return [(each.key, each.replicas) for each in found.partitions]


def new_replicas(path: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Replicas by partition, of a file that can be carried out. Raises UsageError, ToolRefusal."""
    # Kafka: ReassignPartitionsCommand.parseExecuteAssignmentArgs.
    moves = replicas_of(path)
    if not moves:
        raise ToolRefusal("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in moves):
        raise ToolRefusal("Partition replica list cannot be empty")
    repeated = _repeated(partition for partition, _ in moves)
    if repeated:
        names = ",".join(map(str, repeated))
        raise ToolRefusal(f"Partition reassignment contains duplicate topic partitions: {names}")
    twice = [
        f"{partition} contains multiple entries for {','.join(map(str, again))}"
        for partition, replicas in moves
        if (again := _repeated(replicas))
    ]
    if twice:
        raise ToolRefusal(f"Partition replica lists may not contain duplicate entries: {'. '.join(twice)}")
    return dict(moves)


def topics_to_move(path: str) -> list[str]:
    """The topics of a file. Raises UsageError, ToolRefusal."""
    found = _parsed("--topics-to-move-json-file", path, _TopicsFile)
    _check_version(found.version)
    names = [each.topic for each in found.topics]
    check_once(names, "List of topics to reassign")
    return names


def partitions_to_elect(path: str) -> list[TopicPartition]:
    """The partitions of a file. Raises UsageError."""
    found = [each.key for each in _parsed("--path-to-json-file", path, _ElectionFile).partitions]
    repeated = _repeated(found)
    if repeated:
        names = ", ".join(map(str, repeated))
        raise UsageError(f"{path}: Replica election data contains duplicate partitions: [{names}]")
    return found


def check_once(values: Iterable[Hashable], what: str) -> None:
    """Raise ToolRefusal where a list names something twice."""
    repeated = _repeated(values)
    if repeated:
        raise ToolRefusal(f"{what} contains duplicate entries: {_listed(repeated)}")


def _parsed(option: str, path: str, kind: type[F]) -> F:
    try:
        return kind.model_validate_json(read_text(path))
    except ValidationError as problem:
        raise UsageError(f"{option} {path}: {sentence(problem)}") from None
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "not text"
        raise UsageError(f"{option} {path}: {why}; expected a JSON file") from None


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ToolRefusal(f"Not supported version field value {version}")


def _repeated(values: Iterable[H]) -> list[H]:
    return [value for value, times in Counter(values).items() if times > 1]


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"
