"""Names, the common x axis, resumed runs as one curve, tidy data."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from event_records import record, scalar
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.hooks import plugins
from rlnb.metrics.events import EventReader
from rlnb.metrics.metrics import FRESH_S, LastPoint, LastValues, Metrics, last_points
from rlnb.metrics.series import Span
from rlnb.plugin import Library

HORIZON, NUM_ENVS = 24, 4
FRAMES_PER_ITERATION = HORIZON * NUM_ENVS
BEGUN = 1e9
ITERATION_S = 2.0
LIBRARY = Library(
    name="demo",
    backend="demo:Demo",
    metrics={"reward": "Train/mean_reward", "fps": "Perf/total_fps", "entropy": "Loss/entropy"},
    hidden=("/time$",),
)


def span(start: float = BEGUN, frames_per_step: float = FRAMES_PER_ITERATION, steps_per_iteration: float = 1.0) -> Span:
    return Span(start_time=start, frames_per_step=frames_per_step, steps_per_iteration=steps_per_iteration)


def log(folder: Path, values: Mapping[str, Sequence[float]], first: int = 0, begun: float = BEGUN) -> None:
    """Log each tag's values, one step each, ITERATION_S apart."""
    writer = EventFileWriter(str(folder), filename_suffix=f".{begun:.0f}")
    for tag, series in values.items():
        for number, value in enumerate(series):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(Event(wall_time=begun + ITERATION_S * (number + 1), step=first + number, summary=summary))
    writer.close()


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    """Two mapped tags, one of the library's own, one hidden; the entropy is never logged."""
    log(
        tmp_path,
        {
            "Train/mean_reward": [0.0, 1.0, 2.0],
            "Perf/total_fps": [100.0, 200.0, 300.0],
            "Curriculum/level": [1.0],
            "Train/mean_reward/time": [0.0],
        },
    )
    return Metrics(tmp_path, LIBRARY, [span()])


def test_metrics_have_rlnbs_names_and_the_librarys_own_tags(metrics: Metrics) -> None:
    assert metrics.names == ["reward", "fps"]
    assert list(metrics) == ["reward", "fps"]
    assert len(metrics) == 2
    assert metrics.tags == ["Curriculum/level", "Perf/total_fps", "Train/mean_reward"]
    assert metrics["reward"].values == metrics["Train/mean_reward"].values == [0.0, 1.0, 2.0]
    assert metrics["Curriculum/level"].last == 1.0
    assert metrics.unnamed == ["Curriculum/level"]
    assert repr(metrics) == "Metrics(reward=2, fps=300; in .groups: Curriculum (1))"


def test_the_error_for_an_unknown_metric_lists_the_logged_ones_and_the_closest(metrics: Metrics) -> None:
    with pytest.raises(rlnb.NotFoundError, match=r"No metric named 'rewards'\. Logged: .*Did you mean 'reward'\?"):
        metrics["rewards"]


def test_a_metric_that_is_not_logged_yet_is_empty(metrics: Metrics) -> None:
    assert len(metrics["entropy"]) == 0
    assert math.isnan(metrics["entropy"].last)


def test_in_checks_whether_a_metric_exists(metrics: Metrics) -> None:
    assert "reward" in metrics
    assert "Curriculum/level" in metrics
    assert "nonsense" not in metrics
    assert "entropy" not in metrics


def test_the_frames_of_an_iteration_are_those_that_were_seen_after_it(metrics: Metrics) -> None:
    reward = metrics["reward"]
    assert reward.frames == [FRAMES_PER_ITERATION * done for done in (1, 2, 3)]
    assert reward.iterations == [0, 1, 2]
    assert reward.wall_time_s == [BEGUN + ITERATION_S * done for done in (1, 2, 3)]


def test_without_started_json_the_x_axis_is_that_of_the_library(tmp_path: Path) -> None:
    log(tmp_path, {"Train/mean_reward": [1.0, 2.0]})
    assert Metrics(tmp_path, None)["Train/mean_reward"].iterations == [0, 1]


def test_a_resumed_run_is_one_curve_and_the_later_job_takes_precedence(tmp_path: Path) -> None:
    resumed_at = BEGUN + 100.0
    log(tmp_path, {"Train/mean_reward": [0.0, 1.0, 2.0, 3.0, 4.0]})  # killed after its checkpoint at 2
    log(tmp_path, {"Train/mean_reward": [30.0, 40.0, 50.0]}, first=3, begun=resumed_at)
    reward = Metrics(tmp_path, LIBRARY, [span(), span(resumed_at)])["reward"]
    assert reward.iterations == [0, 1, 2, 3, 4, 5]
    assert reward.values == [0.0, 1.0, 2.0, 30.0, 40.0, 50.0]
    assert reward.frames == sorted(set(reward.frames))


def test_after_two_resumptions_from_one_checkpoint_the_last_job_counts(tmp_path: Path) -> None:
    log(tmp_path, {"Train/mean_reward": [0.0, 1.0]})
    log(tmp_path, {"Train/mean_reward": [10.0, 11.0]}, first=1, begun=BEGUN + 100)
    log(tmp_path, {"Loss/entropy": [0.5]}, first=1, begun=BEGUN + 150)  # removes no points of other tags
    log(tmp_path, {"Train/mean_reward": [20.0]}, first=1, begun=BEGUN + 200)
    spans = [span(), span(BEGUN + 100), span(BEGUN + 150), span(BEGUN + 200)]
    reward = Metrics(tmp_path, LIBRARY, spans)["reward"]
    assert (reward.iterations, reward.values) == ([0.0, 1.0], [0.0, 20.0])


def test_tidy_data_has_one_row_per_point(metrics: Metrics) -> None:
    frame = metrics.frame()
    assert list(frame.columns) == ["metric", "iteration", "frames", "wall_time_s", "value"]
    assert len(frame) == 6
    assert frame[frame.metric == "reward"].value.tolist() == [0.0, 1.0, 2.0]
    assert list(metrics.frame("Curriculum/level").metric) == ["Curriculum/level"]


def test_empty_tidy_data_has_the_same_columns(tmp_path: Path) -> None:
    frame = Metrics(tmp_path, LIBRARY).frame()
    assert list(frame.columns) == ["metric", "iteration", "frames", "wall_time_s", "value"]
    assert frame.empty


def test_metrics_grow_with_the_run(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, LIBRARY, [span()])
    assert metrics.names == []
    log(tmp_path, {"Train/mean_reward": [1.0]})
    time.sleep(FRESH_S)
    assert metrics["reward"].last == 1.0
    log(tmp_path, {"Train/mean_reward": [2.0]}, first=1, begun=BEGUN + 10)
    time.sleep(FRESH_S)
    assert metrics["reward"].values == [1.0, 2.0]


def test_the_former_tag_of_a_metric_is_read_if_the_present_one_is_not_logged(tmp_path: Path) -> None:
    library = dataclasses.replace(LIBRARY, former_metrics={"entropy": "Loss/mean_entropy", "fps": "Perf/fps"})
    log(
        tmp_path,
        {"Train/mean_reward": [1.0], "Loss/mean_entropy": [0.5, 0.4], "Perf/fps": [7.0], "Perf/total_fps": [9.0]},
    )
    metrics = Metrics(tmp_path, library)
    assert metrics.names == ["reward", "fps", "entropy"]
    assert metrics["entropy"].values == pytest.approx([0.5, 0.4])
    assert metrics.last("entropy") == pytest.approx(0.4)
    assert metrics.newer("entropy", 1)[0].values == pytest.approx([0.4])
    assert metrics["fps"].values == [9.0]


def test_the_points_are_read_again_at_once_if_a_file_ends_earlier_than_was_read(tmp_path: Path) -> None:
    log(tmp_path, {"Train/mean_reward": [1.0, 2.0, 3.0]})
    metrics = Metrics(tmp_path, LIBRARY, [span()])
    assert len(metrics["reward"]) == 3
    (path,) = tmp_path.rglob("*tfevents*")
    metrics.count_by([span(), dataclasses.replace(span(), logged={path.name: path.stat().st_size - 1})])
    assert metrics["reward"].values == [1.0, 2.0]


@pytest.mark.parametrize(
    ("library", "own", "others"),
    [
        (
            "rsl_rl",
            ["Curriculum/level", "Episode/height", "Metrics/error"],
            ["Loss/value", "Perf/total_fps", "Policy/mean_std"],
        ),
        (
            "rl_games",
            ["Episode/Curriculum/level", "Episode/Metrics/error", "Episode/height"],
            ["info/kl", "losses/c_loss", "rewards/step"],
        ),
        (
            "skrl",
            ["Curriculum/level", "Metrics/error", "height"],
            ["Loss / Value loss", "Episode / Total timesteps (mean)"],
        ),
        (
            "sb3",
            ["Curriculum/level", "Metrics/error", "height"],
            ["train/approx_kl", "rollout/ep_len_mean", "perf/fps"],
        ),
    ],
)
def test_what_the_task_logs_itself_is_told_from_what_the_library_logs(
    tmp_path: Path, library: str, own: list[str], others: list[str]
) -> None:
    terms = ["Episode_Reward/alive", "Episode/Episode_Reward/alive", "Episode_Termination/time_out"]
    tags = [*own, *others, *terms, "Metrics/success_rate" if library != "rl_games" else "Episode/Metrics/success_rate"]
    log(tmp_path, {tag: [1.0] for tag in tags})
    assert Metrics(tmp_path, plugins.library(library), [span()]).of_task == own
    assert Metrics(tmp_path, None, [span()]).of_task == []


def test_a_metric_in_two_folders_is_two_curves_and_its_name_stands_for_the_first(tmp_path: Path) -> None:
    log(tmp_path / "a", {"Train/mean_reward": [1.0, 2.0]})
    metrics = Metrics(tmp_path, LIBRARY, [span()])
    assert metrics.names == ["reward"]
    log(tmp_path / "b", {"Train/mean_reward": [30.0]}, begun=BEGUN + 100)
    time.sleep(FRESH_S)
    assert metrics.names == ["reward [a/]", "reward [b/]"]
    assert metrics.tags == ["Train/mean_reward [a/]", "Train/mean_reward [b/]"]
    assert metrics["reward [b/]"].values == metrics["Train/mean_reward [b/]"].values == [30.0]
    assert metrics["reward"].values == metrics["reward [a/]"].values == [1.0, 2.0]
    assert (metrics.last("reward"), metrics.last("reward [b/]")) == (2.0, 30.0)
    assert all(name in metrics for name in ("reward", "reward [b/]", "Train/mean_reward [b]"))
    assert set(metrics.frame().metric) == set(metrics.names)


def test_a_metric_in_folders_with_brackets_is_read_by_each_of_its_names(tmp_path: Path) -> None:
    for number, folder in enumerate(("exp [v2]", "exp [v1", "a ]b [c")):
        log(tmp_path / folder, {"Train/mean_reward": [number]}, begun=BEGUN + number)
    metrics = Metrics(tmp_path, LIBRARY, [span()])
    assert metrics.names == ["reward [exp [v2]/]", "reward [exp [v1/]", "reward [a ]b [c/]"]
    assert [metrics[name].values for name in metrics.names] == [[0.0], [1.0], [2.0]]
    assert metrics["reward [exp [v2]]"].values == metrics["Train/mean_reward [exp [v2]/]"].values == [0.0]
    assert len(metrics.frame()) == 3
    assert metrics.of_task == []


def test_the_revision_changes_when_a_restart_replaces_points_and_not_when_points_follow(tmp_path: Path) -> None:
    log(tmp_path, {"loss": [0.0, 1.0, 2.0]})
    metrics = Metrics(tmp_path, None)
    before = (metrics.revision, metrics.whole("loss")[1])
    log(tmp_path, {"loss": [3.0]}, first=3, begun=BEGUN + 100)
    time.sleep(FRESH_S)
    assert metrics.revision == before[0]
    assert metrics.newer("loss", before[1])[0].values == [3.0]
    log(tmp_path, {"loss": [20.0]}, first=2, begun=BEGUN + 200)
    time.sleep(FRESH_S)
    assert metrics.revision > before[0]
    assert metrics["loss"].points == [(0, BEGUN + 2, 0.0), (1, BEGUN + 4, 1.0), (2, BEGUN + 202, 20.0)]


def test_event_files_without_a_scalar_say_what_they_hold(tmp_path: Path) -> None:
    writer = EventFileWriter(str(tmp_path))
    metrics = Metrics(tmp_path, None)
    assert (metrics.unread, repr(metrics)) == ("", "Metrics()")
    image = Summary.Value(tag="picture", image=Summary.Image(encoded_image_string=b"png"))
    hparams = Summary.Value(tag="_hparams_", metadata={"plugin_data": {"plugin_name": "hparams"}})
    foreign = Summary.Value(tag="x", metadata={"plugin_data": {"plugin_name": "<b>"}}, tensor={"dtype": 7})
    for value in (image, image, hparams, foreign):
        writer.add_event(Event(wall_time=BEGUN, summary=Summary(value=[value])))
    writer.close()
    time.sleep(FRESH_S)
    assert metrics.unread == "the event files hold no scalars, only 2 images, 1 hparams, 1 other values"
    assert repr(metrics) == f"Metrics({metrics.unread})"
    log(tmp_path, {"loss": [1.0]})
    time.sleep(FRESH_S)
    assert metrics.unread == ""


# -- ends ------------------------------------------------------------------------------------------------------------


EVENT_FILES = Path(__file__).with_name("event_files")


def start(step: int) -> bytes:
    return record(Event(wall_time=1e9, step=step, session_log=SessionLog(status=SessionLog.START)))


def of_curves(folder: Path, ends: dict[str, int]) -> list[tuple[str, str, int | None, str]]:
    """Return what whole curves end with, with the number as text, so that nan equals nan."""
    reader = EventReader(folder, without="system")
    reader.end_at(ends)
    reader.refresh()
    found: list[tuple[str, str, int | None, str]] = []
    for curve in reader.curves.values():
        last = curve.column[-1] if len(curve.column) else None
        found.append((curve.tag, curve.folder, last[0] if last else None, repr(last[2] if last else math.nan)))
    return found


def ends_of(folder: Path, ends: dict[str, int]) -> list[tuple[str, str, int | None, str]]:
    points, _ = last_points(folder, ends)
    return [(point.tag, point.folder, point.step, repr(point.value)) for point in points]


def event_file(rng: random.Random, begin: int) -> bytes:
    """Return an event file of a training that may go back, be restarted and stop logging a tag."""
    tags, step = [f"t{number}" for number in range(rng.randrange(1, 5))], begin
    parts = [record(Event(wall_time=1e9 + rng.random(), file_version="brain.Event:2"))]
    for _ in range(rng.randrange(1, 40)):
        step += 1
        tags = rng.sample(tags, len(tags) - (len(tags) > 1 and rng.random() < 0.05))
        if rng.random() < 0.1:
            parts.append(start(max(0, step - rng.randrange(30))))
        if rng.random() < 0.1:
            step = max(0, step - rng.randrange(30))
        parts += [scalar(tag, step, rng.choice((rng.random(), math.nan, math.inf))) for tag in tags]
    if rng.random() < 0.2:
        parts.append(start(rng.randrange(40)))
    data = bytearray(b"".join(parts))
    if rng.random() < 0.3:
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    return bytes(data)


@pytest.mark.parametrize("seed", range(120))
def test_the_last_points_are_those_of_the_whole_curves(tmp_path: Path, seed: int) -> None:
    ends: dict[str, int] = {}
    rng = random.Random(seed)
    for number in range(rng.randrange(1, 5)):
        folder = rng.choice(("", "", "train", "a/b", "system"))
        path = tmp_path / folder / f"events.out.tfevents.{10**9 + rng.randrange(5)}.host.{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(event_file(rng, rng.randrange(40)))
        if rng.random() < 0.2:
            ends[path.relative_to(tmp_path).as_posix()] = rng.randrange(path.stat().st_size + 10)
    assert ends_of(tmp_path, ends) == of_curves(tmp_path, ends)


@pytest.mark.parametrize("package", sorted(path.name for path in EVENT_FILES.iterdir() if path.is_dir()))
def test_the_last_points_of_the_files_of_real_packages_are_those_of_their_curves(package: str) -> None:
    found = ends_of(EVENT_FILES / package, {})
    assert found
    assert found == of_curves(EVENT_FILES / package, {})


def test_a_point_that_a_later_start_removes_is_not_the_last(tmp_path: Path) -> None:
    data = b"".join(scalar("loss", step, float(step)) for step in range(10)) + start(5)
    (tmp_path / "events.out.tfevents.1000000000.host").write_bytes(data)
    (point,) = last_points(tmp_path, {})[0]
    assert (point.step, point.value) == (4, 4.0)


def test_curves_are_not_kept_in_memory(tmp_path: Path) -> None:
    data = scalar("loss", 2**20, 0.5) * 400_000
    (tmp_path / "events.out.tfevents.1000000000.host").write_bytes(data)
    last_points(tmp_path / "none", {})  # makes the imports
    tracemalloc.start()
    try:
        assert len(last_points(tmp_path, {})[0]) == 1
        assert tracemalloc.get_traced_memory()[1] < 4 << 20, "of 9.6 MB of points"
    finally:
        tracemalloc.stop()


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(64))


def pipe(path: Path) -> None:
    os.mkfifo(path.with_name("other.tfevents"))


def folder(path: Path) -> None:
    path.with_name("other.tfevents").symlink_to(path.parent)


@pytest.mark.parametrize("fault", [damage, pipe, folder])
def test_files_that_cannot_be_read_whole_are_not_sound(tmp_path: Path, fault: Callable[[Path], None]) -> None:
    path = tmp_path / "events.out.tfevents.1000000000.host"
    path.write_bytes(scalar("loss", 1, 0.5))
    assert last_points(tmp_path, {})[1]
    fault(path)
    points, sound = last_points(tmp_path, {})
    assert (len(points), sound) == (1, False)


# -- newest ----------------------------------------------------------------------------------------------------------


SPANS = [Span(start_time=0.0, frames_per_step=4.0, steps_per_iteration=2.0)]


@pytest.mark.parametrize("library", [None, "rsl_rl", "skrl", "rl_games", "sb3"])
@pytest.mark.parametrize("package", sorted(path.name for path in EVENT_FILES.iterdir() if path.is_dir()))
def test_last_values_are_named_as_metrics_are(package: str, library: str | None) -> None:
    spec = plugins.library(library) if library else None
    metrics = Metrics(EVENT_FILES / package, spec, SPANS)
    newest = LastValues(last_points(EVENT_FILES / package, {})[0], spec, SPANS)
    assert (newest.names, newest.tags, newest.of_task) == (metrics.names, metrics.tags, metrics.of_task)
    assert newest.iteration == metrics.iteration
    assert newest.tags
    for name in (*newest.names, *newest.tags, "reward", "none"):
        assert (name in newest) == (name in metrics)
        assert repr(newest.last(name)) == repr(metrics.last(name))


def test_a_curve_without_points_has_a_name_and_no_value() -> None:
    points = [LastPoint(tag="gone", folder="", step=None, value=float("nan"))]
    newest = LastValues(points, None, SPANS)
    assert newest.tags == ["gone"]
    assert newest.iteration == -1
    assert repr(newest.last("gone")) == "nan"
    assert newest.refresh() == 0
