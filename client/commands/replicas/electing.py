"""The action of ``rejoin elect``."""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.admin.admin import Admin
from rejoin.client.commands.replicas.files import partitions_to_elect
from rejoin.client.commands.tools.connecting import PartRefused, ToolRefusal, runs
from rejoin.client.core.errors import CodedError
from rejoin.error_lines import print_error
from rejoin.output import print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.replication.elect_leaders import ElectionType
from rejoin.protocol.types import TopicPartition


async def elect(admin: Admin, options: argparse.Namespace) -> None:
    """Elect leaders, and print which partitions have one now, had one before, and have none."""
    kind = ElectionType[options.election_type.upper()]
    outcomes = await admin.elect_leaders(kind, _partitions(options))
    elected, needless, failed = [], [], {}
    for partition, problem in sorted(outcomes.items()):
        if problem is None:
            elected.append(str(partition))
        elif problem.error is ErrorCode.ELECTION_NOT_NEEDED:
            needless.append(str(partition))
        else:
            failed[partition] = problem
    if elected:
        what = f"Successfully completed leader election ({kind.name})"
        print_text(f"{what} for partitions {', '.join(elected)}")
    if needless:
        print_text(f"Valid replica already elected for partitions {', '.join(needless)}")
    for partition, problem in failed.items():
        what = f"Error completing leader election ({kind.name}) for partition: {partition}"
        print_text(f"{what}: org.apache.kafka.common.errors.{problem.java_name}: {problem}")
    if failed:
        print_error(f"{len(failed)} replica(s) could not be elected")
        raise PartRefused


def _partitions(options: argparse.Namespace) -> list[TopicPartition] | None:
    if options.path_to_json_file:
        return partitions_to_elect(options.path_to_json_file)
    return [TopicPartition(options.topic, options.partition)] if options.topic else None


def _refusal(problem: CodedError | ToolRefusal) -> str:
    is_denied = isinstance(problem, CodedError) and problem.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return "Not authorized to perform leader election" if is_denied else str(problem)


run_action: Final = runs({"--election-type": elect}, Admin, _refusal)
