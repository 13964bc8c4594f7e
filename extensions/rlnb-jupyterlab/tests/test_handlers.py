"""The requests of a page that have no module of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from asking import asked, echo, refused
from rlnb_jupyterlab.watcher import key_of

import rlnb


async def test_a_form_may_name_the_run_of_the_first_weights_by_its_name(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    run.name = "first try"
    await asked(jp_fetch, "runs", key_of(run))
    form = {"task": "Echo", "library": "echo", "init_from": "first try"}
    answer = await asked(jp_fetch, "check", method="POST", body=json.dumps(form), request_timeout=60)
    assert answer["problems"] == []
    assert f"init_from='{run.id}'" in answer["code"]
    for name in ("second try", "..", "policy"):
        body = json.dumps({**form, "init_from": name})
        (problem,) = (await asked(jp_fetch, "check", method="POST", body=body))["problems"]
        assert problem["what"] == f"No run of the list has the name or id {name!r}."


async def test_a_form_is_checked_and_becomes_code(jp_fetch: Any, root: Path) -> None:
    form = {"task": "Echo", "library": "echo", "max_iterations": 5, "agent": {"iteration_s": 0.5}}
    answer = await asked(jp_fetch, "check", method="POST", body=json.dumps(form), request_timeout=60)
    assert answer["problems"] == []
    assert answer["code"].splitlines()[2:] == [
        *("run = rlnb.train(", "    'Echo',", "    library='echo',", "    max_iterations=5,"),
        *("    agent={'iteration_s': 0.5},", ")", "run.watch()"),
    ]
    wrong = json.dumps({**form, "max_iterations": -1, "library": "ecko"})
    problems = (await asked(jp_fetch, "check", method="POST", body=wrong, request_timeout=60))["problems"]
    assert len(problems) == 2
    assert "max_iterations=-1" in problems[0]["what"]
    assert "echo" in problems[1]["what"]


@pytest.mark.parametrize("launcher", ["__import__('os').system('x')", "slurm(walltime=open('x'))", "slurm('a')", "a b"])
async def test_a_launcher_is_never_evaluated(jp_fetch: Any, root: Path, launcher: str) -> None:
    body = json.dumps({"task": "Echo", "launcher": launcher})
    answer = await asked(jp_fetch, "check", method="POST", body=body)
    assert "is not a launcher" in answer["problems"][0]["what"]
    assert answer["code"] == ""


PLUGIN = """
import plotly.graph_objects as go
import rlnb

print("[hello]")


@rlnb.plugin.hookimpl
def rlnb_panels(run):
    print("drawing")
    draw = lambda: go.Figure(go.Scatter(y=run.metrics["reward"].values))
    return [rlnb.plugin.Panel(title="<b>odd</b>", figure=draw), rlnb.plugin.Panel(title="broken", figure=lambda: 1 / 0)]
"""


async def test_plugins_draw_figures_in_a_process_of_their_own(
    jp_fetch: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = echo().wait(60)
    assert (await asked(jp_fetch, "runs", key_of(run), "figures", request_timeout=60))["figures"] == []
    installed = tmp_path / "installed"
    (installed / "drawing-1.0.dist-info").mkdir(parents=True)
    (installed / "drawing.py").write_text(PLUGIN)
    (installed / "drawing-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: drawing\nVersion: 1.0\n"
    )
    (installed / "drawing-1.0.dist-info" / "entry_points.txt").write_text("[rlnb]\ndrawing = drawing\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]))
    answer = await asked(jp_fetch, "runs", key_of(run), "figures", request_timeout=60)
    heading, figure, _, broken = answer["figures"]
    assert heading["text/html"] == "<h3>&lt;b&gt;odd&lt;/b&gt;</h3>"
    assert len(figure["application/vnd.plotly.v1+json"]["data"]) == 1
    assert figure["image/png"]
    assert "ZeroDivisionError" in broken["text/plain"]


async def test_a_run_without_a_simulator_has_no_3d_view(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    code, refusal = await refused(jp_fetch, "runs", key_of(run), "scene", method="POST", body="{}")
    assert code == 409
    assert "without a simulator" in refusal["message"]


async def test_a_page_writes_notes_and_changes_tags(jp_fetch: Any, root: Path) -> None:
    run = echo(tags=["first"]).wait(60)
    key = key_of(run)
    for entry in ({"note": "<b>good</b>"}, {"tag": "kept"}, {"untag": "first"}, {"name": "<i>small</i> steps"}):
        assert await asked(jp_fetch, "runs", key, "notes", method="POST", body=json.dumps(entry)) == {}
    detail = await asked(jp_fetch, "runs", key)
    assert (detail["notes"], detail["tags"], detail["row"]["tags"]) == (["<b>good</b>"], ["kept"], ["kept"])
    assert detail["row"]["name"] == run.name == "<i>small</i> steps"
    assert await asked(jp_fetch, "runs", key, "notes", method="POST", body=json.dumps({"archive": ""})) == {}
    assert [*rlnb.runs()] == []
    assert [one.id for one in rlnb.runs(archived=True)] == [run.id]


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"note": ""},
        {"note": 5},
        {"name": "a\nb"},
        {"tag": " "},
        {"untag": ["a"]},
        {"tag": "a", "note": "b"},
        {"note": "x" * (9 << 20)},
    ],
)
async def test_an_empty_note_is_refused_with_its_reason(jp_fetch: Any, root: Path, entry: dict[str, Any]) -> None:
    run = echo().wait(60)
    status, refusal = await refused(jp_fetch, "runs", key_of(run), "notes", method="POST", body=json.dumps(entry))
    assert 400 <= status < 500
    assert refusal["message"]
    assert [*run.notes] == []
