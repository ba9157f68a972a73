"""Counts the error codes of a response, wherever they stand in it: a function made from its model and compiled.

It runs for most responses, so ``NONE`` is not counted: that would cost half as much again.

Kafka: AbstractResponse.errorCounts, which each response has of its own, and RequestChannel.updateErrorMetrics.
Differs: Kafka counts NONE as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import fields_of
from rejoin.protocol.wire.source import Source

Refusals: TypeAlias = dict[ErrorCode, tuple[Any, ...]]
"""The refusals in a response: for each error where it stands first, as the structs around it from the response on."""

ErrorCounter: TypeAlias = Callable[[Any, dict[ErrorCode, int]], Refusals | None]
"""Adds the errors of a response to the counts; returns the refusals among them, if there are any."""


@cache
def error_counter(model: type, version: int, refusals: frozenset[ErrorCode]) -> ErrorCounter:
    """The function that counts the errors in responses of a version. ``refusals`` are the errors that it returns."""
    source = Source({"NONE": ErrorCode.NONE, "count_error": _count_error, "refusals": refusals})
    source.line("def count_errors(response, counts):")
    source.indent += 1
    source.line("found = None")
    if _has_repeated(model):
        source.line("counted = set()")
    _count_in(source, model, version, ("response",))
    source.line("return found")
    exec(source.compile(f"count the errors of {model.__name__} v{version}"), source.namespace)
    return cast(ErrorCounter, source.namespace["count_errors"])


def _count_in(source: Source, model: type, version: int, structs: tuple[str, ...]) -> None:
    """Count what stands in the last one of these structs, which are within each other."""
    for spec in fields_of(model):
        if not spec.versions.carries(version):
            continue
        value = f"{structs[-1]}.{spec.name}"
        if spec.is_error_code:
            source.line(f"if {value} is not NONE:")
            source.line(f"    found = count_error({value}, ({', '.join(structs)},), counts, found, refusals)")
        elif spec.struct is not None and _has_errors(spec.struct, version):
            assert spec.is_array, "errors stand at the top of a response or in its arrays"
            each = source.name("each")
            source.line(f"for {each} in {value}{'' if spec.nullable is None else ' or ()'}:")
            source.indent += 1
            if getattr(spec.struct, "IS_REPEATED", False):
                # Differs: Kafka counts the errors of a name as often as the request has it.
                source.line(f"if id({each}) in counted:")
                source.line("    continue")
                source.line(f"counted.add(id({each}))")
            _count_in(source, spec.struct, version, (*structs, each))
            source.indent -= 1


def _has_repeated(model: type) -> bool:
    """Whether there may be the same object many times in a message."""
    structs = [spec.struct for spec in fields_of(model) if spec.struct is not None]
    return any(getattr(struct, "IS_REPEATED", False) or _has_repeated(struct) for struct in structs)


def has_nested_errors(model: type, version: int) -> bool:
    """Whether a message has errors other than one at its top."""
    return any(
        spec.struct is not None and spec.versions.carries(version) and _has_errors(spec.struct, version)
        for spec in fields_of(model)
    )


def _has_errors(model: type, version: int) -> bool:
    is_error = any(spec.is_error_code and spec.versions.carries(version) for spec in fields_of(model))
    return is_error or has_nested_errors(model, version)


def _count_error(
    error: ErrorCode,
    structs: tuple[Any, ...],
    counts: dict[ErrorCode, int],
    found: Refusals | None,
    refusals: frozenset[ErrorCode],
) -> Refusals | None:
    """Count an error; returns the refusals that are found so far."""
    counts[error] = counts.get(error, 0) + 1
    if error in refusals:
        found = {} if found is None else found
        found.setdefault(error, structs)
    return found
