"""Reconciliation: one step of one member from its current towards its target assignment.

Runs in the member's own heartbeats and for no other member. What must be given up comes first: as long as the member
has any of it, it gets nothing new, but a task may change its role within the member at once.
Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.groups.modern.group import UnknownStateError
from rejoin.coordinator.core.groups.streams.model.holders import TaskHolders
from rejoin.coordinator.core.groups.streams.model.member import CurrentTasks
from rejoin.coordinator.core.groups.streams.model.state import StreamsMemberState
from rejoin.coordinator.core.groups.streams.model.tasks import (
    HeldTasks,
    OwnedTasks,
    Task,
    Tasks,
    TaskSets,
    each_task,
    task_sets,
)


@dataclass(frozen=True, slots=True)
class TaskGoal:
    """Where a member is to go: a target and its epoch."""

    epoch: int
    tasks: Tasks
    process_id: str
    """Of the member."""
    holders: TaskHolders


def reconcile(current: CurrentTasks, goal: TaskGoal, owned: OwnedTasks | None) -> CurrentTasks:
    """The member's assignment after this heartbeat; the given object if nothing changes."""
    match current.state:
        case StreamsMemberState.STABLE:
            return current if current.epoch == goal.epoch else _advance(current, goal, owned, current.epoch)
        case StreamsMemberState.UNREVOKED_TASKS:
            if owned is None or current.pending.any_in(owned):
                return current
            # Kafka: if even more must go, the member has an epoch that no target has.
            return _advance(current, goal, owned, current.epoch + 1)
        case StreamsMemberState.UNRELEASED_TASKS:
            return _advance(current, goal, owned, current.epoch)
        case _:
            if owned is None or any(owned):
                raise UnknownStateError
            return _advance(current, goal, owned, goal.epoch)


@dataclass(slots=True)
class _Moves:
    """Tasks of one kind that are kept, revoked and added."""

    keep: set[Task]
    revoke: set[Task]
    add: set[Task] = field(default_factory=set)


def _advance(current: CurrentTasks, goal: TaskGoal, owned: OwnedTasks | None, epoch: int) -> CurrentTasks:
    """Revoke tasks outside the target; with none left to revoke, take free tasks of the target."""
    active, standby, warmup, is_unreleased = _moves(current, goal)
    assigned = _sets_of(current.assigned)
    # A task that was active may be kept as standby while the active one is still to be closed.
    for task in assigned[0] & standby.add:
        standby.add.remove(task)
        standby.keep.add(task)
    _swap(standby, warmup)
    _swap(warmup, standby)
    target = set(each_task(goal.tasks.active))
    for moves in (standby, warmup):
        promoted = moves.revoke & target
        moves.revoke -= promoted
        moves.keep |= promoted
    revoke = HeldTasks(
        _epochs(active.revoke, current.assigned, goal.epoch), task_sets(standby.revoke), task_sets(warmup.revoke)
    )
    if revoke and (owned is None or revoke.any_in(owned)):
        return CurrentTasks(
            epoch=epoch,
            previous_epoch=current.epoch,
            state=StreamsMemberState.UNREVOKED_TASKS,
            assigned=HeldTasks(
                _epochs(active.keep, current.assigned, goal.epoch), task_sets(standby.keep), task_sets(warmup.keep)
            ),
            pending=revoke,
        )
    # A promoted task is a standby for as long as its active one is not there.
    target_standby, target_warmup = set(each_task(goal.tasks.standby)), set(each_task(goal.tasks.warmup))
    standby.keep -= active.add - target_standby
    warmup.keep -= active.add - target_warmup
    return CurrentTasks(
        epoch=goal.epoch,
        previous_epoch=current.epoch,
        state=StreamsMemberState.UNRELEASED_TASKS if is_unreleased else StreamsMemberState.STABLE,
        assigned=HeldTasks(
            _epochs(active.keep | active.add, current.assigned, goal.epoch),
            task_sets(standby.keep | standby.add),
            task_sets(warmup.keep | warmup.add),
        ),
    )


def _moves(current: CurrentTasks, goal: TaskGoal) -> tuple[_Moves, _Moves, _Moves, bool]:
    """Moves of each kind, and whether other members or roles block a task that is to be added."""
    holders, process_id = goal.holders, goal.process_id
    own = [mine | also for mine, also in zip(_sets_of(current.assigned), _sets_of(current.pending), strict=True)]
    own_active, own_standby, own_warmup = own

    def other_has_standby(task: Task) -> bool:
        return process_id in holders.standby.get(task, ()) and task not in own_standby

    def other_has_warmup(task: Task) -> bool:
        return process_id in holders.warmup.get(task, ()) and task not in own_warmup

    def blocks_active(task: Task) -> bool:
        return task in holders.active or other_has_standby(task) or other_has_warmup(task)

    def blocks_standby(task: Task) -> bool:
        is_active = holders.active.get(task) == process_id and task not in own_active
        return is_active or process_id in holders.standby.get(task, ()) or other_has_warmup(task)

    def blocks_warmup(task: Task) -> bool:
        is_active = holders.active.get(task) == process_id
        return is_active or other_has_standby(task) or process_id in holders.warmup.get(task, ())

    found = []
    is_unreleased = False
    targets: tuple[TaskSets, ...] = (goal.tasks.active, goal.tasks.standby, goal.tasks.warmup)
    blocks = (blocks_active, blocks_standby, blocks_warmup)
    for assigned, wanted, is_blocked in zip(_sets_of(current.assigned), targets, blocks, strict=True):
        target = set(each_task(wanted))
        moves = _Moves(assigned & target, assigned - target)
        for task in target - moves.keep:
            if is_blocked(task):
                is_unreleased = True
            else:
                moves.add.add(task)
        found.append(moves)
    active, standby, warmup = found
    return active, standby, warmup, is_unreleased


def _swap(before: _Moves, after: _Moves) -> None:
    """Tasks to be revoked in one role and added in the other change it at once. Others keep theirs."""
    for task in before.revoke & after.add:
        before.revoke.remove(task)
        after.add.remove(task)
        after.keep.add(task)


def _sets_of(held: HeldTasks) -> tuple[set[Task], set[Task], set[Task]]:
    return set(each_task(held.active)), set(each_task(held.standby)), set(each_task(held.warmup))


def _epochs(tasks: set[Task], held: HeldTasks, epoch: int) -> dict[str, dict[int, int]]:
    """Active tasks with their epochs: those that are held keep theirs, new ones get this one."""
    found: dict[str, dict[int, int]] = {}
    for subtopology, partition in sorted(tasks):
        since = held.active.get(subtopology, {}).get(partition, epoch)
        found.setdefault(subtopology, {})[partition] = since
    return found
