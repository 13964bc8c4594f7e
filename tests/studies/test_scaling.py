"""Scaling studies: speed and reward on increasing numbers of ranks, and refused arguments."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.studies import scaling, scaling_study
from rlnb.studies.scaling import ScalingStudy


@pytest.fixture
def study(root: Path) -> ScalingStudy:
    """Provide a study of two equal echo runs, labelled as one of one rank and one of two ranks."""
    runs = {
        ranks: rlnb.train("Echo", library="echo", max_iterations=20, agent={"iteration_s": 0.01}).wait(60)
        for ranks in (1, 2)
    }
    return ScalingStudy(mode="horizontal", runs=runs)


def test_efficiency_is_the_rate_of_a_rank_as_a_share_of_the_smallest_runs(study: ScalingStudy) -> None:
    table = study.table()
    assert list(table["ranks"]) == [1, 2]
    assert list(table["frames_per_s"]) == [1000.0, 1000.0]
    assert list(table["efficiency"]) == [1.0, 0.5]
    assert list(table["envs_per_rank"]) == [4, 2]
    assert table["communication"].isna().all()
    assert (table["minutes_to_reward"] <= table["minutes"] + 1e-9).all()


def test_an_efficiency_that_cannot_be_true_is_marked(study: ScalingStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    assert study.most_ranks == 1, "two ranks have 50 %"
    assert set(study.table()["note"]) == {""}
    monkeypatch.setattr(scaling, "_rate", lambda run: {study.runs[1].id: 592.0, study.runs[2].id: 6416.0}[run.id])
    assert list(study.table()["note"]) == ["", "repeat the measurement"]
    assert "6,416 frames/s (542%: repeat the measurement)" in repr(study)
    assert "repeat the measurement" in study._repr_html_()
    assert "repeat the measurement" in [trace.name for trace in study.plot().data]
    assert study.most_ranks == 1
    monkeypatch.setattr(scaling, "_rate", lambda run: {study.runs[1].id: 592.0, study.runs[2].id: 1000.0}[run.id])
    assert study.most_ranks == 2


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([1.0, 1.0, *[100.0] * 8], 100.0),
        ([1.0, 100.0], 100.0),
        ([7.0], 7.0),
        ([1.0] * 4 + [100.0] * 4 + [100.0, 25.0] * 6, 40.0),  # windows of two iterations
        ([], math.nan),
    ],
)
def test_the_rate_is_the_median_of_windows_without_the_first(rates: list[float], expected: float) -> None:
    assert scaling.settled_rate(rates) == pytest.approx(expected, nan_ok=True)


def test_an_argument_that_does_not_exist_is_refused_with_the_closest_name(root: Path) -> None:
    with pytest.raises(rlnb.CheckError, match=r"no argument 'iterations'.* Did you mean 'max_iterations'"):
        scaling_study("Echo", "echo", gpus=[1], iterations=5)


def test_the_envs_per_rank_and_in_total_are_always_shown(study: ScalingStudy) -> None:
    assert repr(study) == (
        "ScalingStudy(horizontal; 1 x 4 = 4 envs: 1,000 frames/s (100%), 2 x 2 = 4 envs: 1,000 frames/s (50%))"
    )
    html = study._repr_html_()
    assert "envs per rank" in html
    assert "Scaling, horizontal" in html


def test_the_figure_has_the_80_percent_line_and_a_curve_for_each_run(study: ScalingStudy) -> None:
    figure = study.plot()
    assert any(shape.y0 == scaling.GOOD for shape in figure.layout.shapes)
    assert {trace.name for trace in figure.data[1:]} == {"1 rank", "2 ranks"}
    assert "nan" not in str(figure.layout.yaxis.range)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"gpus": []}, r"gpus=\[\]"),
        ({"gpus": [1, 0]}, r"gpus=\[1, 0\]"),
        ({"gpus": [1], "mode": "diagonal"}, "mode='diagonal'"),
        ({"gpus": [1, 6], "launcher": LocalLauncher()}, "nothing was started"),
    ],
)
def test_invalid_arguments_are_refused(root: Path, arguments: dict[str, object], expected: str) -> None:
    with pytest.raises(rlnb.CheckError, match=expected):
        scaling_study("Nothing", "echo", **arguments)  # type: ignore[arg-type]
    assert not list(root.glob("runs/*"))


def test_ranks_that_do_not_fill_nodes_are_refused(root: Path) -> None:
    launcher = rlnb.injected(nodes=2, nproc_per_node=4)  # type: ignore[attr-defined]
    with pytest.raises(rlnb.CheckError, match=r"gpus=\[6\] do not fill whole nodes of 4 ranks"):
        scaling_study("Echo", "echo", gpus=[2, 4, 6, 8], launcher=launcher)


def test_nproc_per_node_limits_the_ranks_of_a_node(root: Path) -> None:
    launcher = rlnb.injected(nodes=1)  # type: ignore[attr-defined]
    with pytest.raises(rlnb.CheckError, match=r"gpus=\[3\] do not fill whole nodes of 2 ranks"):
        scaling_study("Echo", "echo", gpus=[2, 3], launcher=launcher, nproc_per_node=2)
    with pytest.raises(rlnb.CheckError, match="nproc_per_node needs a cluster launcher"):
        scaling_study("Echo", "echo", gpus=[2], nproc_per_node=1)


def test_auto_is_not_a_number_of_ranks(root: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="nproc_per_node='auto' is not a positive whole number"):
        scaling_study("Echo", "echo", gpus=[2], nproc_per_node="auto")


def test_a_launcher_is_copied_with_another_number_of_nodes() -> None:
    launcher = rlnb.injected(nodes=1, nproc_per_node=4)  # type: ignore[attr-defined]
    more = scaling._with_nodes(launcher, 3)
    assert (more.nodes, more.nproc_per_node) == (3, 4)
    assert scaling._with_nodes(launcher, 1) is launcher


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
@pytest.mark.parametrize("mode", ["horizontal", "vertical"])
def test_ranks_of_a_real_training_are_compared(root: Path, mode: str) -> None:
    study = scaling_study("Isaac-Cartpole-Direct", gpus=[1, 2], mode=mode, num_envs=16, max_iterations=5, device="cpu")  # type: ignore[arg-type]
    one, two = study.table().to_dict("records")
    assert (one["envs"], two["envs"]) == ((16, 32) if mode == "horizontal" else (16, 16))
    assert (one["envs_per_rank"], two["envs_per_rank"]) == ((16, 16) if mode == "horizontal" else (16, 8))
    assert one["efficiency"] == 1.0
    assert 0.0 < two["communication"] < 1.0
    assert math.isnan(one["communication"])
    assert study.report(root / "scaling.html").exists()
