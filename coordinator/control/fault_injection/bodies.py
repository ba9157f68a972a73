"""Bodies of the control API's requests: strict models, and lists for which one value may stand."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails

LARGEST: Final = 2**63 - 1


def _one_or_several(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """A list, or one value that stands for a list of one."""
    return check(tuple(value)) if isinstance(value, (list, tuple)) else one_level_up((value,), check)


def one_level_up(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """Check a value; the paths of errors leave out their first part, which is not in the JSON that was given."""
    try:
        return check(value)
    except ValidationError as problem:
        errors = [
            InitErrorDetails(type=each["type"], loc=each["loc"][1:], input=each["input"], ctx=dict(each.get("ctx", {})))
            for each in problem.errors(include_url=False)
        ]
        raise ValidationError.from_exception_data(problem.title, errors) from None


def as_tuple(value: object) -> object:
    """A list of JSON as the tuple that it stands for."""
    return tuple(value) if isinstance(value, list) else value


Several = WrapValidator(_one_or_several)


Texts = Annotated[tuple[str, ...], Several]
Numbers = Annotated[tuple[int, ...], Several]


class Body(BaseModel):
    """A body of the control API: unknown fields and other types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _within_64_bits(cls, given: Any) -> Any:
        """Answers repeat what was given, and JSON of other programs has no larger numbers."""
        for name, value in given.items() if isinstance(given, dict) else ():
            for number in value if isinstance(value, list) else [value]:
                if isinstance(number, int) and not -LARGEST <= number <= LARGEST:
                    raise ValueError(f"{name}: expected a number from {-LARGEST} to {LARGEST}")
        return given
