"""One operation of the control API: how it is asked for, described and carried out."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.fault_injection.bodies import Body

T = TypeVar("T")


async def awaited(found: T) -> T:
    """An answer, once it is there: in front of a real cluster the question takes time."""
    return cast(T, await found if isawaitable(found) else found)


class NoFields(Body):
    """No fields."""


class TextAnswer(NamedTuple):
    """An answer that is not JSON."""

    text: str


class ControlOperation(NamedTuple):
    """One method on one path. ``{id}`` stands for a part of the path, which ``call`` gets behind control and body."""

    method: str
    path: str
    does: str
    body: type[Body]
    answer: type[BaseModel | TextAnswer]
    call: Callable[[Control, Any, str], Any]
    in_query: bool = False

    def described(self) -> dict[str, Any]:
        """The operation with the schemas of its arguments and its answer."""
        schema = self.body.model_json_schema() if self.body.model_fields else None
        arguments = "query" if self.in_query else "body"
        return {
            "method": self.method,
            "path": self.path,
            "does": self.does,
            arguments: schema,
            "answer": self._answer(),
        }

    def _answer(self) -> dict[str, Any]:
        if self.answer is TextAnswer:
            return {"type": "string", "contentMediaType": "text/plain"}
        return {"$ref": f"#/schemas/{self.answer.__name__}"}
