"""Messages become JSON with the names that the pages use."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rlnb_jupyterlab import detail, handlers, messages, queues, rows
from rlnb_jupyterlab.choices import Offer

PROTOCOL = Path(__file__).parents[1] / "ts" / "server" / "protocol.ts"


def test_a_message_is_json_with_its_type_and_its_rows() -> None:
    points = messages.Points(x=[1.0], y=[2.5])
    message = messages.CurvesMessage(key="a", reset=True, series={"reward": points})
    assert json.loads(messages.encoded(message)) == {
        "type": "curves",
        "key": "a",
        "reset": True,
        "series": {"reward": {"x": [1.0], "y": [2.5]}},
        "names": None,
    }


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        messages.encoded(messages.Points(x=[float("nan")], y=[]))


def test_a_value_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="PosixPath is not JSON"):
        messages.encoded({"path": Path("/")})


def interface(name: str) -> set[str]:
    """Return the fields of an interface in the TypeScript source."""
    text = PROTOCOL.read_text()
    (parents, body), *_ = re.findall(rf"interface {name}(?: extends (\w+))? \{{\n(.*?)\n\}}", text, re.DOTALL)
    return {*re.findall(r"^  readonly (\w+)\??:", body, re.MULTILINE), *(interface(parents) if parents else ())}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Row", rows.Row),
        ("Place", messages.Place),
        ("PlacesMessage", messages.PlacesMessage),
        ("RunsMessage", messages.RunsMessage),
        ("Points", messages.Points),
        ("CurvesMessage", messages.CurvesMessage),
        ("LogMessage", messages.LogMessage),
        ("ActionMessage", messages.ActionMessage),
        ("Registry", Offer),
        ("Job", detail.JobDetail),
        ("Checkpoint", detail.CheckpointDetail),
        ("RunFile", detail.RunFile),
        ("Detail", detail.Detail),
        ("Diff", detail.Difference),
        ("LogPiece", handlers.LogPiece),
        ("Checked", handlers.Checked),
        ("Cluster", handlers.Cluster),
    ],
)
def test_the_page_and_the_server_have_the_same_names(name: str, kind: Any) -> None:
    assert {field for field in kind.__dataclass_fields__} == interface(name)


def test_a_table_of_a_queue_has_the_names_of_the_page() -> None:
    assert set(queues.Table.__dataclass_fields__) == {"launcher", "title", "columns", "rows", "error", "detail"}
