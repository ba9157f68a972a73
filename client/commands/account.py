"""`rejoin account DIR`: how many records were processed, how many twice, and how many never."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from rejoin.error_lines import print_error, refuse
from rejoin.output import print_json, print_text
from rejoin.protocol.printable import printable

if TYPE_CHECKING:
    from rejoin.client.workload.accounting import Account

app: Final = App(name="account", help="Count records that were processed twice or never, from journals of consumers.")

_COLUMNS: Final = ("GROUP", "TOPIC", "PARTITION", "PROCESSED", "TWICE", "LOST", "COMMITTED")


@app.default
def show(
    directory: Path,
    *,
    group: Annotated[str | None, Parameter(metavar="GROUP")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Count records that were processed twice or never, from journals of consumers.

    PROCESSED counts distinct processed records. TWICE counts repeated processing. LOST counts records that no consumer
    processed although the group passed them: it processed a later record, or committed a later offset. COMMITTED is the
    committed offset.

    Parameters
    ----------
    directory
        Directory that was --journal of the consumers.
    group
        Count only this group.
    as_json
        Print one JSON object a line instead of a table.
    """
    # Imported here, since help can do without.
    from rejoin.client.workload.accounting import account  # noqa: PLC0415
    from rejoin.journal.events.client import EVENT_TYPES  # noqa: PLC0415
    from rejoin.journal.events.coordinator import JournalRowsLost  # noqa: PLC0415
    from rejoin.journal.reader import read_journal  # noqa: PLC0415
    from rejoin.journal.schema import JournalSchema  # noqa: PLC0415
    from rejoin.journal.segments import JournalError  # noqa: PLC0415

    try:
        schema = JournalSchema([*EVENT_TYPES, JournalRowsLost])
        events = [row.event for row in read_journal(directory, schema, source="client")]
        accounts = [found for found in account(events) if group in {None, found.group_id}]
    except JournalError as problem:
        return refuse(problem)
    except OSError as problem:
        return refuse(f"{directory}: {problem.strerror}; expected the directory that was --journal of the consumers")
    missing = sum(event.rows_lost for event in events if isinstance(event, JournalRowsLost))
    if missing:
        print_error(f"{directory}: {missing} rows are missing, as they could not be written; counts may be too low")
    if as_json:
        for found in accounts:
            print_json(_row(found))
    elif accounts:
        print_text(table(accounts))
    else:
        whose = "" if group is None else f" of group {group}"
        return refuse(
            f"{directory}: no journal of consumers{whose}; expected the directory that was --journal of the consumers"
        )
    return 0


def table(accounts: list[Account]) -> str:
    """The accounts as a table, with the totals of each group below."""
    rows = [_cells(found) for found in accounts]
    for group_id in dict.fromkeys(found.group_id for found in accounts):
        mine = [found for found in accounts if found.group_id == group_id]
        sums = [sum(getattr(found, name) for found in mine) for name in ("processed", "duplicated", "lost")]
        rows.append((printable(group_id), "(all)", "-", *map(str, sums), "-"))
    widths = [max(len(row[column]) for row in [_COLUMNS, *rows]) for column in range(len(_COLUMNS))]
    return "\n".join(
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [_COLUMNS, *rows]
    )


def _cells(found: Account) -> tuple[str, ...]:
    committed = "-" if found.committed is None else str(found.committed)
    counts = (found.partition, found.processed, found.duplicated, found.lost)
    return (printable(found.group_id), printable(found.topic), *map(str, counts), committed)


def _row(found: Account) -> dict[str, object]:
    return {
        "group": found.group_id,
        "topic": found.topic,
        "partition": found.partition,
        "processed": found.processed,
        "duplicated": found.duplicated,
        "lost": found.lost,
        "lost_spans": found.lost_spans,
        "committed": found.committed,
    }
