"""How ``--help`` shows options: each text is one paragraph, and a default of nothing is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts.help import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


class HelpText(DefaultFormatter):
    """Panels of options, whose texts are wrapped by the terminal alone."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        from rich.text import Text  # noqa: PLC0415

        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                text.plain = " ".join(text.plain.split())
        super().__call__(console, options, panel)


def stated_default(value: Any) -> str | None:
    """A default as help shows it; none where nothing is the default."""
    return None if value in (False, "", (), None) else str(value)
