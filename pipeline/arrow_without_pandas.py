"""Keeps Arrow from importing pandas, which takes longer than a small report does. No table becomes a pandas frame."""

from __future__ import annotations

import sys
from typing import Final

_PANDAS: Final = "pandas"


class _NoPandas:
    """Finds modules first, and has no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == _PANDAS:
            raise ModuleNotFoundError(name=name)


def import_arrow() -> None:
    """Import Arrow. It looks for pandas at its first array, and never again; others may import pandas afterwards."""
    if _PANDAS in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa  # noqa: PLC0415

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
