"""Models whose fields are known to be right, made at half the cost: for the parts of which a response has thousands."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

_new: Final = object.__new__
_set: Final = object.__setattr__
_NAMES: Final[dict[type[BaseModel], set[str]]] = {}
"""The names of the fields of each model that was made here. All that were made have this very set."""


def unvalidated(model: type[M], **fields: Any) -> M:
    """A frozen model with these fields, which must be all that it has. Nothing is checked and nothing converted."""
    # pydantic: BaseModel.model_construct does this as well, and looks at aliases, defaults and extras for each.
    names = _NAMES.get(model)
    if names is None:
        names = _NAMES[model] = set(model.model_fields)
    made = _new(model)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", names)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made
