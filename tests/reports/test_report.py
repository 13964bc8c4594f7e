import contextlib
import html
import re

import numpy as np
import pytest
from PIL import Image

import rlnb
from rlnb.display.links import FILES
from rlnb.machine.packages import find_browser
from rlnb.plugin import hookimpl
from rlnb.reports import report

HOSTILE = "<script>alert(1)</script>"
LARGEST_BYTES = 1_500_000
LOADS = re.compile(
    r"""<(?:script|link|iframe|object)\b|(?:src|href)\s*=(?!\s*["']?data:)|url\(|@import""", re.IGNORECASE
)


@pytest.fixture(scope="module")
def runs(echo_root):
    rlnb.register(Hostile())
    good = rlnb.train(
        HOSTILE, library="echo", max_iterations=30, seed=7, agent={"+note": HOSTILE}, tags=[HOSTILE]
    ).wait()
    good.evaluate(episodes=20)
    (good.path / "logs" / "params").mkdir()
    (good.path / "logs" / "params" / "agent.yaml").write_text(
        f"algorithm:\n  learning_rate: 0.00125\nnote: {HOSTILE}\n"
    )
    (good.path / "media").mkdir(exist_ok=True)
    noise = np.random.default_rng(0).integers(0, 255, (1200, 1600, 3), np.uint8)
    for number in range(4):
        Image.fromarray(noise).save(good.path / "media" / f"wrist-{number}<rgb>.png")
    failed = rlnb.train("Echo", library="echo", agent={"crash_at": 3})
    with pytest.raises(rlnb.RunError):
        failed.wait()
    return [good, failed]


class Hostile:
    """A plugin whose task has a hostile name."""

    @hookimpl
    def rlnb_tasks(self):
        from rlnb import Task

        return [Task(id=HOSTILE)]


@pytest.fixture(scope="module")
def page(runs):
    return rlnb.report(runs[0]).read_text()


def test_the_report_of_one_run_is_in_its_folder(runs, page):
    assert (runs[0].path / "report.html").read_text() == page


def test_it_loads_nothing_and_runs_nothing(page):
    assert LOADS.search(page) is None
    assert "<script" not in page
    assert len(page.encode()) < LARGEST_BYTES


def test_every_outside_string_is_escaped(page):
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5


def test_it_shows_the_run_and_how_to_reproduce_it(runs, page):
    run = runs[0]
    for text in (
        "completed",
        "30 of 30",
        "1,920",
        "and the seed, 7.",
        "95 % interval",
        run.manifest.git.get("commit", ""),
        run.id,
    ):
        assert text in page
    assert f"rlnb.train(like={str(run.path)!r})" in html.unescape(page)
    assert "-m rlnb.worker train" in page


def test_it_has_every_hyperparameter_and_says_where_the_task_is_from(page):
    assert "algorithm.learning_rate = 0.00125" in page
    assert "Source of the task" in page
    assert "belongs to a package" in page


def test_it_has_curves_and_as_many_pictures_as_fit(page):
    assert re.search(r"""<img alt=['"]Metric curves over frames['"] src=['"]data:image/png;base64,""", page)
    assert 1 <= page.count("<img") - 1 < 4
    assert "Not shown:" in page


def test_the_executed_notebook_has_plotly_figures_with_pictures_and_no_widget(runs, page):
    import nbformat

    path = runs[0].path / "report.ipynb"
    executed = nbformat.read(path, as_version=4)
    bundles = [output.data for cell in executed.cells for output in cell.get("outputs", []) if "data" in output]
    shown = [b for b in bundles if {"application/vnd.plotly.v1+json", "image/png"} <= set(b)]
    assert "Metric curves over frames" in [bundle["text/plain"] for bundle in shown]
    assert "widgets" not in executed.metadata
    assert path.stat().st_size < 1_000_000


def test_it_is_printed_if_chromium_is_installed(runs, tmp_path, monkeypatch):
    if not find_browser():
        pytest.skip("there is no Chromium here")
    rlnb.report(runs[1], tmp_path / "printed.html", pdf=True)
    assert (tmp_path / "printed.pdf").read_bytes().startswith(b"%PDF")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(rlnb.RlnbError, match="apt-get install chromium"):
        rlnb.report(runs[1], pdf=True)


def test_a_notebook_of_the_user_is_not_replaced(runs, tmp_path):
    mine = tmp_path / "ant.ipynb"
    mine.write_text('{"cells": [], "metadata": {}}')
    with pytest.raises(rlnb.RlnbError, match="which rlnb did not write"):
        rlnb.report(runs[1], tmp_path / "ant.html")
    assert mine.read_text() == '{"cells": [], "metadata": {}}'
    assert not (tmp_path / "ant.html").exists()


@pytest.fixture(scope="module")
def again(runs, tmp_path_factory):
    """The path of a second report of an archived run in place of a first one, and what was said meanwhile."""
    path, said = tmp_path_factory.mktemp("again") / "again.html", []
    rlnb.Runs([runs[1]]).archive().apply()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "status", lambda text: said.append(text) or contextlib.nullcontext())
        for _ in range(2):
            rlnb.report(runs[1], path)
    rlnb.Runs([runs[1]]).restore().apply()
    return path, said


def test_an_earlier_report_is_replaced_and_an_archived_run_has_one_too(runs, again):
    path, _ = again
    assert runs[1].id in path.read_text()
    assert path.with_suffix(".ipynb").exists()


def test_a_path_without_the_html_suffix_is_refused(runs, tmp_path):
    with pytest.raises(rlnb.RlnbError, match=r"does not end in \.html"):
        rlnb.report(runs[1], tmp_path / "report.pdf")


def test_several_runs_have_one_report_with_the_end_of_the_log_of_a_failed_one(runs, echo_root):
    path = rlnb.report(runs)
    assert path.parent == echo_root / "reports"
    assert FILES in path._repr_mimebundle_()
    page = path.read_text()
    assert "echo crashes at iteration 3" in page
    assert "iteration 2 of 20" in page
    assert all(run.id in page for run in runs)


def test_an_unwritable_path_is_reported_with_the_fix(runs, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rlnb.RlnbError, match="Choose another path="):
        rlnb.report(runs[1], tmp_path / "file" / "report.html")


def test_it_shows_a_status_while_the_cell_waits(runs, again):
    _, said = again
    assert said == 2 * [f"Writing the report of {runs[1].id}"]


def test_a_missing_papermill_is_reported_with_the_pip_line(runs, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "papermill" else found(name, *a))
    with pytest.raises(rlnb.RlnbError, match=r"pip install .*\[report\]'"):
        rlnb.report(runs[1])


def test_no_run_to_report_on_is_an_error():
    with pytest.raises(rlnb.RlnbError, match="no run"):
        rlnb.report([])
    with pytest.raises(rlnb.RlnbError, match=r"'an-id' is not a run. Use rlnb\.get_run"):
        rlnb.report("an-id")


def test_two_reports_of_several_runs_may_be_written_at_the_same_second() -> None:
    assert report._default_path([]) != report._default_path([])
