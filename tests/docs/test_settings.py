"""docs/settings.md has every setting with its default, made from the models."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from rejoin.client.config import ConsumerConfig
from rejoin.client.producer_config import ProducerConfig
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.coordinator.config import Settings
from tests.docs.tables import check_table
from tests.paths import ROOT

SHARED = ClientSecurityConfig.model_fields
PAGE = ROOT / "docs" / "settings.md"


def table(model: type[BaseModel]) -> str:
    """Each setting with its default and what it does."""
    rows = ["| setting | default | |", "|---|---|---|"]
    for name, info in model.model_fields.items():
        if issubclass(model, ClientSecurityConfig) and model is not ClientSecurityConfig and name in SHARED:
            continue  # these have a table of their own
        default = info.default
        if default is PydanticUndefined or default is None:
            shown = ""
        elif isinstance(default, str | int | float):
            shown = f"`{str(default).lower() if isinstance(default, bool) else default}`"
        else:
            shown = f"`{','.join(map(str, default))}`" if default else ""
        words = (info.description or "").replace("|", "\\|")
        rows.append(f"| `{info.alias or name}` | {shown} | {words} |")
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("## Coordinator", Settings),
        ("## Consumer", ConsumerConfig),
        ("## Producer", ProducerConfig),
        ("## Security of consumers and producers", ClientSecurityConfig),
    ],
)
def test_the_table_is_that_of_the_model(heading: str, model: type[BaseModel], request: pytest.FixtureRequest) -> None:
    check_table(PAGE, heading, table(model), rewrite=request.config.getoption("--rewrite"))


def test_a_number_beyond_kafkas_type_is_refused_by_its_setting() -> None:
    """Kafka: ConfigDef.Type INT and LONG."""
    numbers = [
        info.alias or name for name, info in Settings.model_fields.items() if info.annotation is int and not info.frozen
    ]
    assert len(numbers) > 60
    for name in numbers:
        for beyond in (2**63, 10**20):
            with pytest.raises(ValidationError, match=name):
                Settings.model_validate({name: beyond})
