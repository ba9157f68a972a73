"""Differences from an older release of Kafka, from those from the newest one and what is known of the older one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rejoin.conform.comparison.compare import Difference
from rejoin.conform.comparison.outcomes import ClassifiedDifference, kind_of
from rejoin.conform.recordings.by_release import FieldOfRelease


def from_release(
    fields: Iterable[FieldOfRelease], found: Iterable[ClassifiedDifference]
) -> tuple[ClassifiedDifference, ...]:
    """The differences from a release whose ``fields`` differ from the newest; ``found`` are those from the newest."""
    expected: dict[tuple[int, str], list[FieldOfRelease]] = {}
    for one in fields:
        expected.setdefault((one.step, one.path), []).append(one)
    differing = list(found)
    kept = [each for one in differing for each in _unlike(one, expected.get((one.step, one.path), []))]
    left = [one for some in expected.values() for one in some]
    kept += [_as_newest(one) for one in left if not any(_covers(other, one) for other in differing)]
    return tuple(sorted(kept, key=lambda one: one.step))


def _unlike(one: ClassifiedDifference, expected: list[FieldOfRelease]) -> Iterator[ClassifiedDifference]:
    """A difference as it is from the release, if it is one; takes its field from those that are expected."""
    if not expected:
        yield one
        return
    known = next((each for each in expected if each.value == one.other), expected[0])
    expected.remove(known)
    if known.value != one.other:
        yield replace(one, kafka=known.value, kind=_kind(one, known.value, one.other))


def _as_newest(one: FieldOfRelease) -> ClassifiedDifference:
    """A field that was answered as the newest release does."""
    plain = ClassifiedDifference("field", one.step, one.api, one.version, one.path, one.value, one.newest)
    return replace(plain, kind=_kind(plain, one.value, one.newest))


def _kind(one: ClassifiedDifference, kafka: object, other: object) -> str:
    return kind_of(Difference(one.step, one.api, one.version, one.path, kafka, other))


def _covers(one: ClassifiedDifference, field: FieldOfRelease) -> bool:
    """Whether a difference is of a whole answer, or of a list, that has a field."""
    is_within = not one.path or field.path == one.path or field.path.startswith(f"{one.path}.")
    return one.step == field.step and is_within
