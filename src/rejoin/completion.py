"""``rejoin --install-completion``: write the completion script of a shell, and print each file that has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter
from cyclopts.completion.detect import ShellDetectionError, detect_shell
from cyclopts.completion.install import powershell_profile

from rejoin.commands import build
from rejoin.error_lines import refuse
from rejoin.output import print_text

Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell"]


def install_completion(
    *,
    shell: Shell | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None,
    startup_file: Annotated[bool, Parameter(negative="--no-startup-file", show_default=False)] = True,
) -> int:
    """Install completion for your shell.

    Parameters
    ----------
    shell
        Shell to install for. The default is the shell that runs this command.
    output
        File for the script. The default is the directory where the shell looks for such scripts.
    startup_file
        Add a line that loads the script to ~/.bashrc, ~/.zshrc or the profile of PowerShell. Fish needs none.
    """
    try:
        wanted = shell or detect_shell()
    except ShellDetectionError:
        return refuse("the shell is unknown; expected --shell bash, zsh, fish or powershell")
    startup = _startup_file(wanted) if startup_file else None
    before = _lines(startup)
    try:
        # A script needs the options of every subcommand, so it leaves out those that cannot be imported.
        script = build(importable_only=True).install_completion(
            shell=wanted, output=output, add_to_startup=startup is not None
        )
    except OSError as problem:
        return refuse(f"{problem.filename}: {problem.strerror}; expected a file that can be written")
    print_text(f"wrote {script}")
    if startup is not None:
        added = [line for line in _lines(startup) if line not in before]
        print_text("\n".join([f"added to {startup}:", *added]) if added else f"{startup} loads it already")
    print_text("A new shell completes the commands and options of rejoin.")
    return 0


def _startup_file(shell: Shell) -> Path | None:
    """The file to which a line is added; none for a shell that finds its scripts without one."""
    match shell:
        case "bash":
            return Path.home() / ".bashrc"
        case "zsh":
            return Path.home() / ".zshrc"
        case "powershell":
            return powershell_profile()
        case "fish":
            return None


def _lines(file: Path | None) -> list[str]:
    if file is None or not file.exists():
        return []
    return file.read_text(encoding="utf-8", errors="replace").splitlines()
