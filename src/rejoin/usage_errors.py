"""Errors of a command line in one sentence, as cyclopts and argparse raise them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

_TYPES: Final = {"int": "a whole number", "float": "a number", "bool": "yes or no"}
_LONGEST: Final = 200
_ALIKE: Final = 0.7


def usage_problem(problem: CycloptsError) -> str:
    """The error in one sentence, which ends with what to do."""
    command = " ".join(("rejoin", *(problem.command_chain or ())))
    match problem:
        case UnknownOptionError():
            known = (name for argument in problem.argument_collection if argument.parse for name in argument.names)
            said = unknown_option(command, problem.token.keyword or problem.token.value, known)
        case UnusedCliTokensError():
            said = unexpected(command, problem.unused_tokens or ())
        case UnknownCommandError():
            said = _unknown_command(command, problem)
        case MissingArgumentError(argument=argument) if argument is not None and type(problem) is MissingArgumentError:
            option = problem.keyword or next((token.keyword for token in argument.tokens if token.keyword), None)
            said = _missing(command, argument) if option is None else missing_value(command, option)
        case ValidationError(exception_message=text) if text:
            said = f"{text}; {_help_of(command)} lists all"
        case RepeatArgumentError():
            said = f"{problem.token.keyword} is given twice; leave one of them out"
        case CoercionError(token=token) if token is not None and problem.msg is None:
            said = f"{_option_of(problem)} {token.value}: expected {_expected(problem.target_type)}"
        case _:
            problem.verbose = False
            said = f"{' '.join(str(problem).split()).rstrip('.')}; {_help_of(command)} lists the options"
    return re.sub(rf"\S{{{_LONGEST},}}", lambda value: f"{value[0][:50]}… ({len(value[0]):,} characters)", said)


def no_option(_: Any, value: object) -> None:
    """A validator of files that may be ``-``: what looks like an option is none. Raises ValueError."""
    if str(value).startswith("-") and str(value) != "-":
        raise ValueError(f"there is no option {value}")


def unknown_option(command: str, option: str, known: Iterable[str]) -> str:
    """An option that the command does not have."""
    name = option.partition("=")[0]
    near = get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    hint = f"is it {near[0]}? " if near else ""
    return f"there is no option {name}; {hint}{_help_of(command)} lists all"


def unexpected(command: str, tokens: Iterable[str]) -> str:
    """Arguments beyond those that the command takes."""
    return f"unexpected {' '.join(tokens)}; {_help_of(command)} shows what can be given"


def missing_value(command: str, option: str) -> str:
    """An option at the end of the line that takes a value."""
    return f"{option}: the value is missing; {_help_of(command)} describes it"


def wrong_type(option: str, value: str, kind: str) -> str:
    """A value that cannot be read as what the option takes."""
    return f"{option} {value}: expected {_TYPES.get(kind, kind)}"


def argparse_problem(parser: argparse.ArgumentParser, message: str) -> str:
    """An error of argparse in one sentence, which ends with what to do."""
    if found := re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL):
        given = found[1].split(" ")
        options = [each for each in given if each.startswith("-")]
        if options:
            return unknown_option(parser.prog, options[0], parser._option_string_actions)
        return unexpected(parser.prog, given)
    if found := re.fullmatch(r"argument (\S+): invalid (\w+) value: '(.*)'", message, re.DOTALL):
        return wrong_type(found[1].partition("/")[0], found[3], found[2])
    if found := re.fullmatch(r"argument (\S+): expected (?:one|at least one) argument", message):
        return missing_value(parser.prog, found[1].partition("/")[0])
    return f"{message}; {_help_of(parser.prog)} lists the options"


def _help_of(command: str) -> str:
    return f"{command} --help"


def _missing(command: str, argument: Any) -> str:
    """A required argument that is not there."""
    if argument.index is not None:
        name = argument.name.lstrip("-").upper()
    else:
        name = f"{argument.name} {argument.parameter.metavar or ''}".rstrip()
    return f"{name} is missing; {_help_of(command)} describes it"


def _unknown_command(command: str, problem: UnknownCommandError) -> str:
    given = (problem.unused_tokens or ("",))[0]
    names = list(problem.app or ())
    if given.startswith("-"):
        return unknown_option(command, given, names)
    known = [name for name in names if not name.startswith("-")]
    near = get_close_matches(given, known, n=1)
    hint = f"is it {near[0]}? " if near else ""
    return f"there is no command {given}; {hint}expected one of {', '.join(known)}"


def _option_of(problem: CoercionError) -> str:
    if problem.token is not None and problem.token.keyword is not None:
        return problem.token.keyword
    return "" if problem.argument is None else problem.argument.name.lstrip("-").upper()


def _expected(kind: Any) -> str:
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices:
        *first, last = map(str, choices)
        return f"{', '.join(first)} or {last}" if first else last
    name = getattr(kind, "__name__", str(kind))
    return _TYPES.get(name, name)
