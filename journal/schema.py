"""The rows that a set of events makes: read as typed events, and described as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, create_model

from rejoin.journal.envelope import Envelope, JournalRow
from rejoin.journal.events.base import Event
from rejoin.journal.events.fields import MEANINGS
from rejoin.journal.renames import upgraded_text


class JournalSchema:
    """The rows that a set of events makes: one model for each, distinguished by ``event``."""

    def __init__(self, events: Iterable[type[Event]]) -> None:
        self.events = {event.name: event for event in events}
        self.models = {name: _row_model(event) for name, event in self.events.items()}
        models: Any = reduce(or_, self.models.values())
        rows: Any = Annotated[models, Field(discriminator="event")] if len(self.models) > 1 else models
        self._rows: TypeAdapter[Envelope] = TypeAdapter(rows)

    def read(self, text: bytes | str) -> JournalRow:
        """Read one row. Raises ``pydantic.ValidationError`` for anything that is not exactly one of these rows."""
        row = self._rows.validate_json(upgraded_text(text.encode() if isinstance(text, str) else text))
        event = self.events[row.event]
        values = {name: getattr(row, name) for name in event.model_fields}
        envelope = Envelope.model_construct(**{name: getattr(row, name) for name in Envelope.model_fields})
        return JournalRow(envelope, event.model_construct(**values))

    def json_schema(self) -> dict[str, Any]:
        """The rows as JSON Schema."""
        return self._rows.json_schema()


def _row_model(event: type[Event]) -> type[Envelope]:
    taken = event.model_fields.keys() & Envelope.model_fields.keys()
    assert not taken, f"{event.__name__} has fields of the envelope: {', '.join(sorted(taken))}"
    fields: dict[str, Any] = {"event": (Literal[event.name], ...)}
    for name, info in event.model_fields.items():
        described = copy(info)
        described.description = MEANINGS[name]
        fields[name] = (info.rebuild_annotation(), described)
    model: type[Envelope] = create_model(f"{event.__name__}Row", __base__=Envelope, __doc__=event.__doc__, **fields)
    return model


def events_in(*modules: Any) -> list[type[Event]]:
    """The events that modules define: every class of theirs that nothing there derives from."""
    classes = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Event) and value.__module__ == module.__name__
    ]
    return [each for each in classes if not any(each in other.__bases__ for other in classes)]
