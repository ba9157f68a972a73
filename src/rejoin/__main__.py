"""``rejoin``, or ``python -m rejoin``: one command. Each subcommand imports what it needs when it is called."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from rejoin.commands import COMMANDS, EXTRAS, build
from rejoin.error_lines import errors_of, print_error

_METADATA: Final = "importlib.metadata"
STOPPED = 130
"""Exit code after Ctrl-C, as shells have it."""
_has_frozen = False


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a subcommand and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        # As with python -m: an assignor may be a module of the directory in which the command is called.
        sys.path.append(str(Path.cwd()))
    _check_name(given)
    with errors_of(" ".join(given[:1])):
        _end(given)


def _end(given: Sequence[str]) -> NoReturn:
    try:
        code = _serve(given) if given[:1] == ["serve"] else _run(given)
        sys.stdout.flush()
    except ImportError as problem:
        extra = _needed_extra(problem, given)
        if extra is None:
            raise
        _refuse(f"this command needs {EXTRAS[extra][0]}, which is not installed: pip install 'rejoin-kafka[{extra}]'")
    except BrokenPipeError:
        # The reader of the output has gone, as head has after its lines. Python would complain again at the end.
        sys.stdout = None
        code = 1
    except Exception as problem:
        from rejoin.posix import PosixNeeded  # noqa: PLC0415 (it loads asyncio)

        if not isinstance(problem, PosixNeeded):
            raise
        _refuse(problem)
    except KeyboardInterrupt:
        # Commands that have something to end handle it themselves; this one came while modules were imported.
        sys.exit(STOPPED)
    sys.exit(code or 0)


def _run(given: Sequence[str]) -> Any:
    # Commands say by themselves that a server cannot be reached.
    logging.getLogger("rejoin.client").disabled = True
    with _loading():
        app = build(given[0] if given else "")
        from cyclopts import CycloptsError  # noqa: PLC0415
    chain, *_ = app.parse_commands(given)
    with errors_of(" ".join(chain)):
        try:
            return app(given, exit_on_error=False, print_error=False, result_action="return_value")
        except CycloptsError as problem:
            from rejoin.usage_errors import usage_problem  # noqa: PLC0415

            _refuse(usage_problem(problem))


def _serve(given: Sequence[str]) -> Any:
    """Run a coordinator at once if its options are plain, and else by the parser. The words after ``--`` are a command.

    A test waits for its coordinator to start. The parser's imports, and those of rich, which structlog would use for
    tracebacks on a terminal, would be a quarter of that.
    """
    end = given.index("--") if "--" in given else len(given)
    dashes, given, command = given[end : end + 1], given[:end], tuple(given[end + 1 :])
    if dashes and not command:
        _refuse("expected a command after --, with its arguments")
    # Pydantic would read the entry points of every installed distribution, to find plugins that watch validation.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with _loading("rich"), _without_metadata():
        from rejoin.coordinator.commands.plain_options import plain_options  # noqa: PLC0415
        from rejoin.coordinator.commands.serve_options import SHORT, ServeOptions  # noqa: PLC0415

        options = plain_options(ServeOptions, given[1:], SHORT)
        if options is not None:
            from rejoin.coordinator.commands.serve import run  # noqa: PLC0415
    if options is not None:
        return run(ServeOptions(**options), command)
    from rejoin.coordinator.commands.serve_parser import COMMAND  # noqa: PLC0415

    COMMAND.set(command)
    return _run(given)


@contextmanager
def _loading(*hidden: str) -> Iterator[None]:
    """Import without collecting garbage: there is none, and looking for it costs a tenth of the start.

    A ``hidden`` package is not found by those that would use it if they could.
    """
    gc.disable()
    modules: dict[str, Any] = sys.modules
    absent = [name for name in hidden if name not in modules]
    modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del modules[name]
        if not _keeps_frozen():
            # Makes all that was imported old, so that the next young collection does not look through it.
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def _keeps_frozen() -> bool:
    """Whether this process has frozen objects of its own, which must not be thawed.

    Python counts them one by one, a tenth of a second for a million, so it is asked until there are some.
    """
    global _has_frozen  # noqa: PLW0603
    _has_frozen = _has_frozen or gc.get_freeze_count() > 0
    return _has_frozen


@contextmanager
def _without_metadata() -> Iterator[None]:
    """Import pydantic without ``importlib.metadata``, which would load 40 modules more, for mail headers and archives.

    Pydantic takes one function from there and calls it only to find plugins. The stand-in passes on whatever is used.
    """
    if _METADATA in sys.modules:
        yield
        return
    stand_in: Any = ModuleType(_METADATA)

    def find(name: str) -> Any:
        if name.startswith("__"):  # the import system asks for __path__
            raise AttributeError(name)
        _drop(stand_in)
        return getattr(import_module(_METADATA), name)

    def entry_points(**selection: Any) -> Any:
        return find("entry_points")(**selection)

    stand_in.entry_points, stand_in.__getattr__ = entry_points, find
    sys.modules[_METADATA] = stand_in
    try:
        yield
    finally:
        _drop(stand_in)


def _drop(module: ModuleType) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


def _check_name(given: Sequence[str]) -> None:
    """Refuse an unknown subcommand here: to suggest one, the parser would import them all."""
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(given[0], COMMANDS, n=1)
        hint = f"is it {near[0]}? " if near else ""
        _refuse(f"there is no command {given[0]}; {hint}expected one of {', '.join(COMMANDS)}")


def _refuse(problem: object) -> NoReturn:
    print_error(problem)
    sys.exit(2)


def _needed_extra(problem: BaseException | None, given: Sequence[str]) -> str | None:
    """The extra whose absence made an import fail, the command's own before others; None if something else did."""
    own = COMMANDS[given[0]].extra if given and given[0] in COMMANDS else None
    extras = sorted(EXTRAS, key=lambda extra: extra != own)
    while problem is not None:
        if isinstance(problem, ModuleNotFoundError) and problem.name:
            package = problem.name.partition(".")[0]
            for extra in extras:
                if package in EXTRAS[extra]:
                    return extra
        problem = problem.__cause__
    return None


if __name__ == "__main__":
    main()
