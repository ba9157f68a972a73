"""Reads the Grafana dashboard with Grafana's own models, and says what they do not know: ``make dashboard``.

The models are those of the package grafana-foundation-sdk. A field that they drop is one that Grafana has not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

DASHBOARD: Final = Path(__file__).parents[2] / "examples" / "grafana" / "consumer-groups.json"


def differences(given: Any, made: Any, where: str = "") -> Iterator[str]:
    """Differences between the dashboard and its parsed form."""
    if isinstance(given, dict) and isinstance(made, dict):
        for name, value in given.items():
            if name in made:
                yield from differences(value, made[name], f"{where}/{name}")
            else:
                yield f"{where}/{name} is no field"
    elif isinstance(given, list) and isinstance(made, list) and len(given) == len(made):
        for number, (before, after) in enumerate(zip(given, made, strict=True)):
            yield from differences(before, after, f"{where}/{number}")
    elif given != made:
        yield f"{where}: {given!r} became {made!r}"


def main() -> int:
    """Print the differences; the exit code."""
    package = "grafana_foundation_sdk"
    import_module(f"{package}.cog.plugins").register_default_plugins()
    given = json.loads(DASHBOARD.read_text())
    dashboard = import_module(f"{package}.models.dashboard").Dashboard.from_json(given)
    made = json.loads(import_module(f"{package}.cog.encoder").JSONEncoder().encode(dashboard))
    found = list(differences(given, made))
    print("\n".join(found) or f"{DASHBOARD.name}: {len(given['panels'])} panels, as Grafana's models have them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
