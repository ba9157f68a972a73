"""The page's part about readers: what each got of the records that went into transforms."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rejoin.pipeline.report.data import Row

_HEAD: Final = (
    *("reader", "transforms", "delivery", "#went in", "#read", "#twice", "#lost", "#out of order"),
    *("#of aborted transactions", "#unread", "#to come"),
)
_COUNTS: Final = ("in", "read", "twice", "lost", "out_of_order", "aborted", "unread", "to_come")


def section(rows: Sequence[Row]) -> Iterator[str]:
    """A table of all readers, by run."""
    several = len({row["run_id"] for row in rows}) > 1
    head = "".join(f"<th{' class=n' if name[0] == '#' else ''}>{name.lstrip('#')}</th>" for name in _HEAD)
    body = "".join(_reader(row, several) for row in rows)
    yield '<section class="card">'
    yield '<p class="soft">Each record that went into a transform, beside the results that a reader got.</p>'
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'


def _reader(row: Row, several: bool) -> str:
    about = f"{row['isolation_level']}, {row['run_id']}" if several else row["isolation_level"]
    ways = zip(row["transform_groups"] or (), row["commit_modes"] or (), strict=True)
    transforms = ", ".join(f"{group} (commit: {mode})" for group, mode in ways)
    good = "good" if row["delivery"] == "exactly once" else "high" if row["records_lost"] else "medium"
    numbers = "".join(f'<td class="n">{row[f"records_{name}"]:,}</td>' for name in _COUNTS)
    return (
        f'<tr><td>{_text(row["reader"])} <span class="soft">{_text(about)}</span></td><td>{_text(transforms)}</td>'
        f'<td class="{good}">{_text(row["delivery"])}</td>{numbers}</tr>'
    )


def _text(value: Any) -> str:
    return html.escape(str(value))
