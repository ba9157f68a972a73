"""AlterReplicaLogDirs (key 34): move replicas to other directories of their broker (KIP-113)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Int32, PartitionIndex, TopicName


class AlterReplicaLogDirTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partitions: tuple[PartitionIndex, ...]


class AlterReplicaLogDir(Struct):
    """A directory, and the replicas that it shall hold."""

    path: str
    topics: tuple[AlterReplicaLogDirTopic, ...]


class AlterReplicaLogDirsRequest(Request):
    """Move replicas; the last directory that is named for one counts."""

    dirs: tuple[AlterReplicaLogDir, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        # Kafka: a topic comes once for each directory that it is named with.
        results = tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index in topic.partitions
                ),
            )
            for each in self.dirs
            for topic in each.topics
        )
        return AlterReplicaLogDirsResponse(results=results)


class AlterReplicaLogDirPartitionResult(Struct):
    """The outcome for one partition."""

    IS_REPEATED = True

    partition_index: PartitionIndex
    error_code: ErrorCode = ErrorCode.NONE


class AlterReplicaLogDirTopicResult(Struct):
    """Outcomes for partitions of one topic."""

    IS_REPEATED = True

    topic_name: TopicName
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...]


class AlterReplicaLogDirsResponse(Response):
    """Outcomes by topic."""

    throttle_time_ms: Int32 = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()


def moved(errors: dict[tuple[str, int], ErrorCode]) -> AlterReplicaLogDirsResponse:
    """The response with an error for each topic and partition."""
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), error in errors.items():
        by_topic.setdefault(topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
        )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=tuple(partitions))
            for topic, partitions in by_topic.items()
        )
    )
