"""Pages of HTML that need nothing else: one base with the palette, and the one place where templates are filled in.

A template lies in the package that shows it, and extends ``base.html``. What is filled in is escaped, whatever it
holds: group names and reasons come from clients. What is HTML already is handed over as :class:`Markup`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["Markup", "render", "script_data"]


def render(package: str, name: str, **values: Any) -> str:
    """The page that a package's template makes of values."""
    return _environment().get_template(f"{package}/{name}").render(values)


def script_data(value: Any) -> Markup:
    """A value as JSON within a script, which nothing in it can end."""
    return Markup(json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_source), keep_trailing_newline=True
    )


def _source(name: str) -> str:
    """A template; a script or style sheet that one includes stands in the page as it is."""
    package, _, file = name.rpartition("/")
    text = files(package or __package__).joinpath(file).read_text(encoding="utf-8")
    return text if file.endswith(".html") else f"{{% raw %}}{text}{{% endraw %}}"
