"""Models whose fields are known to be right, made at half the cost: for the parts of which a response has thousands."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

_new: Final = object.__new__

SLOT_SETTERS: Final = tuple(
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
"""Setters of a model's four slots: its values, the names that were given, and two that stay none."""

_set_fields, _set_names, _set_extra, _set_private = SLOT_SETTERS
_NAMES: Final[dict[type[BaseModel], set[str]]] = {}
"""The names of the fields of each model that was made here. All that were made have this very set."""


def unvalidated(model: type[M], **fields: Any) -> M:
    """A frozen model with these fields, which must be all that it has. Nothing is checked and nothing converted."""
    # pydantic: BaseModel.model_construct does this as well, and looks at aliases, defaults and extras for each.
    names = _NAMES.get(model)
    if names is None:
        names = _NAMES[model] = set(model.model_fields)
    made = _new(model)
    _set_fields(made, fields)
    _set_names(made, names)
    _set_extra(made, None)
    _set_private(made, None)
    return made
