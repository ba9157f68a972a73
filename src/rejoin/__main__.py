"""``rejoin``, or ``python -m rejoin``: one command. Each subcommand imports what it needs when it is called."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

if TYPE_CHECKING:
    from cyclopts import App

COMPLETION: Final = "--install-completion"

EXTRAS: Final = {
    "pipeline": ("pyspark", "py4j", "numpy", "pandas", "pyarrow"),
    "postgres": ("asyncpg",),
}
"""Each extra of the distribution with the packages that it brings; the first one stands for all."""


class Command(NamedTuple):
    """Where a subcommand is defined, its line of help, and the group that lists it."""

    target: str
    help: str
    group: str
    extra: str | None = None
    """The extra without which it cannot be imported."""


COMMANDS: Final = {
    "serve": Command("coordinator.commands.serve_parser:run", "Run a coordinator.", "Run"),
    "consume": Command("client.commands.consume:app", "Run the consumers of a group.", "Run"),
    "groups": Command(
        "client.commands.groups.command:app",
        "List, describe, delete and reset groups, as kafka-consumer-groups.sh does.",
        "Run",
    ),
    "simulate": Command("simulation.commands:run", "Play a scenario on a virtual clock.", "Simulate"),
    "gallery": Command("simulation.commands:gallery_app", "Show the scenarios that come with Rejoin.", "Simulate"),
    "search": Command(
        "simulation.commands:search", "Play random scenarios with random faults, and check every invariant.", "Simulate"
    ),
    "assign": Command(
        "client.commands.assign:app",
        "Show what an assignor assigns, and what moves when the group changes.",
        "Simulate",
    ),
    "report": Command(
        "pipeline.commands.report:report", "Explain rebalances, from journals and brokers' logs.", "Explain", "pipeline"
    ),
    "watch": Command("pipeline.commands.watch:watch", "Explain rebalances as they happen.", "Explain", "pipeline"),
    "sweep": Command(
        "pipeline.commands.sweep:sweep",
        "Simulate a grid of settings and seeds, and rank the settings.",
        "Explain",
        "pipeline",
    ),
    "account": Command(
        "client.commands.account:app", "Count records processed twice or never, from journals.", "Explain"
    ),
    "log": Command(
        "coordinator.commands.log.command:app", "Read, check, copy and fill an offsets log, offline.", "Inspect"
    ),
    "transcript": Command("transcript.commands:app", "Play transcripts against a fresh node.", "Inspect"),
    "journal-schema": Command(
        "coordinator.commands.journal_schema:print_journal_schema",
        "Print the JSON Schema of the journal's rows.",
        "Inspect",
    ),
}
"""Each subcommand, in the order in which the help shows them."""


def build(*, importable_only: bool = False) -> App:
    """The command line. Nothing of a subcommand is imported here."""
    from importlib.metadata import version  # noqa: PLC0415
    from importlib.util import find_spec  # noqa: PLC0415

    from cyclopts import App, Group  # noqa: PLC0415

    app = App(
        name="rejoin",
        help="Emulate Kafka's group coordinator, simulate groups on a virtual clock, and explain rebalances.",
        version=lambda: version("rejoin"),
    )
    groups = {command.group: Group.create_ordered(command.group) for command in COMMANDS.values()}
    for order, (name, command) in enumerate(COMMANDS.items()):
        if importable_only and command.extra is not None and find_spec(EXTRAS[command.extra][0]) is None:
            continue
        app.command(
            f"rejoin.{command.target}", name=name, help=command.help, group=groups[command.group], sort_key=order
        )
    app.register_install_completion_command(help="Install completion for this shell.")
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a subcommand and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        # As with python -m: an assignor may be a module of the directory in which the command is called.
        sys.path.append(str(Path.cwd()))
    _check_name(given)
    try:
        code = _serve(given[1:]) if given[:1] == ["serve"] else None
        if code is None:
            code = _run(given)
    except ImportError as problem:
        extra = _needed_extra(problem)
        if extra is None:
            raise
        _refuse(f"{given[0]} needs {EXTRAS[extra][0]}, which is not installed: pip install 'rejoin[{extra}]'")
    sys.exit(code or 0)


def _run(given: Sequence[str]) -> Any:
    with _loading():
        # A completion script needs the options of every subcommand, so it leaves out what is not installed.
        app = build(importable_only=given[:1] == [COMPLETION])
    return app(given, result_action="return_value")


def _serve(given: Sequence[str]) -> int | None:
    """Run a coordinator at once if its options are plain; otherwise return None, and leave them to the parser.

    A test waits for its coordinator to start. The parser's imports, and those of rich, which structlog would use for
    tracebacks on a terminal, would be a quarter of that.
    """
    # Pydantic would read the entry points of every installed distribution, to find plugins that watch validation.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with _loading("rich"):
        from rejoin.coordinator.commands.plain_options import plain_options  # noqa: PLC0415
        from rejoin.coordinator.commands.serve_options import SHORT, ServeOptions  # noqa: PLC0415

        options = plain_options(ServeOptions, given, SHORT)
        if options is None:
            return None
        from rejoin.coordinator.commands.serve import run  # noqa: PLC0415
    return run(ServeOptions(**options))


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
        # Makes all that was imported old, so that the next young collection does not look through it.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def _check_name(given: Sequence[str]) -> None:
    """Refuse an unknown subcommand here: to suggest one, the parser would import them all."""
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(given[0], COMMANDS, n=1)
        _refuse(f"there is no command {given[0]}; " + (f"is it {near[0]}?" if near else "see rejoin --help"))


def _refuse(problem: str) -> NoReturn:
    print(f"rejoin: {problem}", file=sys.stderr)
    sys.exit(2)


def _needed_extra(problem: BaseException | None) -> str | None:
    """The extra whose absence made an import fail, or None if something else did."""
    while problem is not None:
        if isinstance(problem, ModuleNotFoundError) and problem.name:
            package = problem.name.partition(".")[0]
            for extra, packages in EXTRAS.items():
                if package in packages:
                    return extra
        problem = problem.__cause__
    return None


if __name__ == "__main__":
    main()
