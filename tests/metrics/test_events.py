"""Event files that are complete, growing, cut off or damaged."""

from __future__ import annotations

import json
import logging
import math
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_FLOAT
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from rlnb.metrics.columns import Scalar
from rlnb.metrics.events import TAIL_BYTES, EventReader, kind_of, number_of, tag_of

TAG = "Train/mean_reward"
EVENT_FILES = Path(__file__).with_name("event_files")
STEPS = 10
MANY_TAGS, MANY_STEPS = 20, 10_000
READ_BOUND_S = 20.0
HEADER_BYTES = 12


def event(step: int, values: Mapping[str, float], wall_time: float = 1e9) -> Event:
    summary = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
    return Event(wall_time=wall_time + step, step=step, summary=Summary(value=summary))


def write(folder: Path, *events: Event, suffix: str = "") -> Path:
    """Write one event file; return its path."""
    before = set(folder.rglob("*tfevents*"))
    writer = EventFileWriter(str(folder), filename_suffix=suffix)
    for each in events:
        writer.add_event(each)
    writer.close()
    (path,) = set(folder.rglob("*tfevents*")) - before
    return path


def ends_of(data: bytes) -> list[int]:
    """Return the end offset of each record."""
    ends = [0]
    while ends[-1] < len(data):
        (length,) = struct.unpack_from("<Q", data, ends[-1])
        ends.append(ends[-1] + HEADER_BYTES + length + 4)
    return ends[1:]


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """The bytes of a file with a version record and STEPS scalars."""
    path = write(tmp_path, *(event(step, {TAG: float(step)}) for step in range(STEPS)))
    data = path.read_bytes()
    path.unlink()
    return data


def read(reader: EventReader) -> dict[str, list[Scalar]]:
    return {tag: list(column) for tag, column in reader.scalars.items()}


def steps(reader: EventReader) -> list[int]:
    return [step for step, _, _ in reader.scalars.get(TAG, ())]


def test_a_missing_folder_has_no_scalars(tmp_path: Path) -> None:
    assert EventReader(tmp_path / "logs").refresh() == 0


def test_scalars_come_with_step_time_and_value(tmp_path: Path) -> None:
    write(tmp_path, event(3, {TAG: 0.5, "Loss/value": 2.0}))
    reader = EventReader(tmp_path)
    assert reader.refresh() == 2
    assert read(reader) == {TAG: [(3, 1e9 + 3, 0.5)], "Loss/value": [(3, 1e9 + 3, 2.0)]}


def test_a_scalar_in_a_tensor_is_read_and_an_image_is_skipped(tmp_path: Path) -> None:
    scalars = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    scalar = Summary.Value(tag=TAG, tensor=TensorProto(dtype=DT_FLOAT, float_val=[0.25]), metadata=scalars)
    image = Summary.Value(tag="picture", image=Summary.Image(height=1, width=1, encoded_image_string=b"png"))
    write(tmp_path, Event(wall_time=1e9, step=1, summary=Summary(value=[scalar, image])))
    reader = EventReader(tmp_path)
    assert reader.refresh() == 1
    assert read(reader) == {TAG: [(1, 1e9, 0.25)]}


def test_reading_continues_where_it_stopped(tmp_path: Path, whole: bytes) -> None:
    path, ends = tmp_path / "events.out.tfevents.1000000000.host", ends_of(whole)
    path.write_bytes(whole[: ends[4]])
    reader = EventReader(tmp_path)
    assert reader.refresh() == 4  # the first record is the file's version
    assert reader.refresh() == 0
    path.write_bytes(whole)
    assert reader.refresh() == STEPS - 4
    assert steps(reader) == list(range(STEPS))


@pytest.mark.parametrize("cut", [1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 3, -1])
def test_an_incomplete_record_is_read_once_it_is_complete(
    tmp_path: Path, whole: bytes, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    path, ends = tmp_path / "events.out.tfevents.1000000000.host", ends_of(whole)
    torn_at = ends[5] + cut if cut > 0 else ends[6] + cut
    path.write_bytes(whole[:torn_at])
    reader = EventReader(tmp_path)
    assert reader.refresh() == 5
    path.write_bytes(whole)
    assert reader.refresh() == STEPS - 5
    assert steps(reader) == list(range(STEPS))
    assert not caplog.records


def test_scalars_before_a_damaged_record_are_kept_with_one_warning(
    tmp_path: Path, whole: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path, ends = tmp_path / "events.out.tfevents.1000000000.host", ends_of(whole)
    data = bytearray(whole)
    data[ends[5] + HEADER_BYTES : ends[6] - 4] = b"\xff" * (ends[6] - 4 - ends[5] - HEADER_BYTES)
    path.write_bytes(bytes(data))
    reader = EventReader(tmp_path)
    with caplog.at_level(logging.WARNING):
        reader.refresh()
        reader.refresh()
    assert steps(reader) == list(range(5))
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    assert f"after byte {ends[5]}" in caplog.text


@pytest.mark.parametrize("length", [1 << 40, 1 << 20, 7])
def test_a_damaged_length_is_not_taken_for_an_incomplete_record(
    tmp_path: Path, whole: bytes, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    path, ends = tmp_path / "events.out.tfevents.1000000000.host", ends_of(whole)
    data = bytearray(whole)
    data[ends[5] : ends[5] + 8] = struct.pack("<Q", length)
    path.write_bytes(bytes(data))
    reader = EventReader(tmp_path)
    with caplog.at_level(logging.WARNING):
        reader.refresh()
    assert steps(reader) == list(range(5))
    assert "is damaged" in caplog.text


def test_a_damaged_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1000000000.broken").write_bytes(b"\xff" * 100)
    write(tmp_path, event(1, {TAG: 1.0}))
    reader = EventReader(tmp_path)
    assert reader.refresh() == 1
    assert steps(reader) == [1]


def test_several_files_are_read_in_order_of_their_age(tmp_path: Path, whole: bytes) -> None:
    later = write(tmp_path, event(20, {TAG: 20.0}))
    later.rename(tmp_path / "events.out.tfevents.1000000100.host")
    (tmp_path / "events.out.tfevents.1000000000.host").write_bytes(whole)
    reader = EventReader(tmp_path)
    assert reader.refresh() == STEPS + 1
    assert steps(reader) == [*range(STEPS), 20]


def test_a_file_that_appears_later_is_read_too(tmp_path: Path) -> None:
    write(tmp_path, event(1, {TAG: 1.0}), suffix=".a")
    reader = EventReader(tmp_path)
    reader.refresh()
    write(tmp_path, event(2, {TAG: 2.0}), suffix=".b")
    assert reader.refresh() == 1
    assert steps(reader) == [1, 2]


def test_two_hundred_thousand_scalars_are_readable(tmp_path: Path) -> None:
    tags = [f"Episode_Reward/term_{number}" for number in range(MANY_TAGS)]
    write(tmp_path, *(event(step, dict.fromkeys(tags, 1.0)) for step in range(MANY_STEPS)))
    reader = EventReader(tmp_path)
    begun = time.monotonic()
    assert reader.refresh() == MANY_TAGS * MANY_STEPS
    assert time.monotonic() - begun < READ_BOUND_S
    begun = time.monotonic()
    assert reader.refresh() == 0
    assert time.monotonic() - begun < 0.5


def test_with_a_time_limit_the_newest_scalars_are_read_first_and_the_rest_later(tmp_path: Path) -> None:
    count = 3 * TAIL_BYTES // 64
    write(tmp_path, *(event(step, {TAG: float(step)}) for step in range(count)))
    reader = EventReader(tmp_path)
    assert reader.refresh(limit_s=0.0) == 0
    assert reader.behind > 2 * TAIL_BYTES
    ahead = list(reader.ahead(TAG))
    assert ahead[-1] == (count - 1, 1e9 + count - 1, float(count - 1))
    assert [step for step, _, _ in ahead] == list(range(count - len(ahead), count))
    assert reader.tags == {TAG}
    assert reader.refresh() == count
    assert reader.behind == 0
    assert not len(reader.ahead(TAG))
    assert steps(reader) == list(range(count))


def test_scalars_beside_a_record_longer_than_a_chunk_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlnb.metrics.events._CHUNK_BYTES", 64)
    image = Summary.Value(tag="picture", image=Summary.Image(encoded_image_string=b"png" * 1000))
    picture = Event(wall_time=1e9, step=1, summary=Summary(value=[image]))
    write(tmp_path, event(0, {TAG: 0.0}), picture, event(2, {TAG: 2.0}))
    reader = EventReader(tmp_path)
    assert reader.refresh() == 2
    assert steps(reader) == [0, 2]


def test_an_incomplete_record_does_not_count_as_unread(tmp_path: Path) -> None:
    write(tmp_path, *(event(step, {TAG: 1.0}) for step in range(5)))
    (path,) = tmp_path.rglob("*tfevents*")
    path.write_bytes(path.read_bytes()[:-3])
    reader = EventReader(tmp_path)
    assert reader.refresh() == 4
    assert reader.behind == 0


def test_damage_in_the_tail_read_ahead_does_not_hide_earlier_scalars(tmp_path: Path) -> None:
    count = 3 * TAIL_BYTES // 64
    write(tmp_path, *(event(step, {TAG: float(step)}) for step in range(count)))
    (path,) = tmp_path.rglob("*tfevents*")
    whole = path.read_bytes()
    path.write_bytes(whole[:-500] + b"\xff" * 500)
    reader = EventReader(tmp_path)
    reader.refresh(limit_s=0.0)
    reader.refresh()
    assert count - 20 < len(steps(reader)) < count


def test_a_folder_can_be_skipped(tmp_path: Path) -> None:
    write(tmp_path, event(0, {TAG: 1.0}))
    write(tmp_path / "system", event(0, {"other": 1.0}))
    reader = EventReader(tmp_path, without="system")
    assert reader.refresh() == 1


def test_a_long_record_is_passed_over_unread_and_those_after_it_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlnb.metrics.events._CHUNK_BYTES", 200)
    long = Event(step=1, summary=Summary(value=[Summary.Value(tag="text", metadata={"display_name": "x" * 1000})]))
    path = write(tmp_path, event(0, {TAG: 0.0}), long, event(2, {TAG: 2.0}))
    data = path.read_bytes()
    end = ends_of(data)[2]  # of the long record, which follows the version and a scalar
    path.write_bytes(data[: end - 1])
    reader = EventReader(tmp_path)
    assert (reader.refresh(), reader.behind) == (1, 0), "an incomplete record is not behind"
    path.write_bytes(data)
    assert reader.refresh() == 1
    assert steps(reader) == [0, 2]


def test_a_damaged_length_of_a_long_record_ends_the_reading(
    tmp_path: Path, whole: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlnb.metrics.events._CHUNK_BYTES", 200)
    path = tmp_path / "events.out.tfevents.1.here"
    path.write_bytes(whole + struct.pack("<QI", 5000, 1) + bytes(10_000))
    reader = EventReader(tmp_path)
    assert reader.refresh() == STEPS
    assert "a record claims 5000 bytes" in caplog.text


def test_nothing_is_read_beyond_the_end_that_a_file_was_given(tmp_path: Path, whole: bytes) -> None:
    path, ends = tmp_path / "events.out.tfevents.1", ends_of(whole)
    path.write_bytes(whole)
    reader = EventReader(tmp_path)
    reader.refresh()
    assert steps(reader) == list(range(STEPS))
    assert reader.end_at({path.name: ends[3]}), "too much was read"
    reader.refresh()
    assert steps(reader) == [0, 1, 2]
    path.write_bytes(whole + whole[ends[0] :])
    assert not reader.end_at({path.name: ends[3]})
    assert reader.refresh() == 0
    assert reader.behind == 0


@pytest.mark.parametrize("package", sorted(path.name for path in EVENT_FILES.iterdir()))
def test_the_files_of_real_packages_are_read_as_tensorboard_reads_them(package: str) -> None:
    """``benchmarks/event_files.py --keep`` writes these files anew, with what TensorBoard read from them."""
    reader = EventReader(EVENT_FILES / package)
    reader.refresh()
    ours: dict[str, dict[str, list[list[float]]]] = {}
    for curve in reader.curves.values():
        ours.setdefault(curve.folder or ".", {})[curve.tag] = [[step, value] for step, _, value in curve.column]
    theirs = json.loads((EVENT_FILES / package / "tensorboard.json").read_text())
    assert json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True), "compared as text, since nan != nan"


def test_a_tag_that_a_tail_hid_gets_a_curve_once_it_is_read(tmp_path: Path) -> None:
    """When reading runs out of time, the number of tags stays the same: one of them leaves as another one comes."""
    count = 3 * TAIL_BYTES // 64
    others = {0: "first", count // 2: "middle", count - 1: "last"}
    write(tmp_path, *(event(step, {others.get(step, TAG): float(step)}) for step in range(count)))
    reader = EventReader(tmp_path)
    reader.refresh(limit_s=0.0)
    assert reader.tags == {TAG, "last"}
    (path,) = tmp_path.rglob("*tfevents*")
    reader.end_at({path.name: path.stat().st_size // 4})  # the tail is gone, and another tag is there
    reader.refresh()
    assert reader.tags == {TAG, "first"}
    reader.end_at({})
    reader.refresh()
    assert reader.tags == {TAG, *others.values()}


def test_the_metadata_of_a_tag_count_for_all_files_of_their_folder(tmp_path: Path) -> None:
    """TensorBoard reads these points too."""
    scalars = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    for folder in ("a", "b"):
        for step, metadata in enumerate((scalars if folder == "a" else None, None)):
            value = Summary.Value(tag=TAG, tensor=TensorProto(dtype=DT_FLOAT, float_val=[0.5]), metadata=metadata)
            write(tmp_path / folder, Event(wall_time=1e9, step=step, summary=Summary(value=[value])), suffix=f".{step}")
    reader = EventReader(tmp_path)
    assert reader.refresh() == 2
    assert steps(reader) == [0, 1]
    assert reader.others == {"other values": 2}, "those of the other folder"


def test_the_scalars_of_a_record_longer_than_a_chunk_are_read_once_it_is_complete(tmp_path: Path) -> None:
    """TensorFlow 1 writes all summaries of a step into one event, with the images."""
    image = Summary.Value(tag="picture", image=Summary.Image(encoded_image_string=b"png" * 100_000))
    tags = [f"term_{number}" for number in range(20_000)]
    values = [image, *(Summary.Value(tag=tag, simple_value=1.0) for tag in tags)]
    path = write(tmp_path, Event(wall_time=1e9, step=1, summary=Summary(value=values)), event(2, {TAG: 2.0}))
    data = path.read_bytes()
    path.write_bytes(data[: ends_of(data)[1] - 1])
    reader = EventReader(tmp_path)
    assert (reader.refresh(), reader.behind) == (0, 0)
    path.write_bytes(data)
    assert reader.refresh() == len(tags) + 1
    assert reader.tags == {TAG, *tags}
    assert reader.others == {"images": 1}


def test_a_record_that_is_too_large_to_read_is_counted_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlnb.metrics.events._CHUNK_BYTES", 200)
    monkeypatch.setattr("rlnb.metrics.events._LARGEST_RECORD", 1000)
    video = Summary.Value(tag="video", image=Summary.Image(encoded_image_string=b"gif" * 1000))
    write(tmp_path, event(0, {TAG: 0.0}), Event(step=1, summary=Summary(value=[video])), event(2, {TAG: 2.0}))
    reader = EventReader(tmp_path)
    assert reader.refresh() == 2
    assert steps(reader) == [0, 2]
    assert reader.others == {"other values": 1}


def test_an_event_of_no_bytes_is_read_over_and_zeros_are_damage(
    tmp_path: Path, whole: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, event(20, {TAG: 0.0}), Event(), event(21, {TAG: 1.0}))
    reader = EventReader(tmp_path)
    assert (reader.refresh(), caplog.text) == (2, "")
    path.write_bytes(path.read_bytes() + bytes(64) + whole)
    assert reader.refresh() == 0
    assert "a record claims 0 bytes" in caplog.text


def test_looking_for_news_of_very_many_tags_costs_little(tmp_path: Path) -> None:
    """A view that asks for each tag looks for news all the time."""
    write(tmp_path, event(1, {f"t/{number}": 1.0 for number in range(20_000)}))
    reader = EventReader(tmp_path)
    assert reader.refresh() == 20_000
    begun = time.process_time()
    for _ in range(20):
        reader.refresh()
    assert time.process_time() - begun < 0.2
    write(tmp_path, event(2, {"t/7": 2.0, "new": 1.0}), suffix=".later")
    assert reader.refresh() == 2
    assert (reader.scalars["t/7"][-1][2], "new" in reader.tags) == (2.0, True)


# -- values ----------------------------------------------------------------------------------------------------------


TYPES = {
    "float32": (1, "float_val"), "float64": (2, "double_val"), "int32": (3, "int_val"), "uint8": (4, "int_val"),
    "int16": (5, "int_val"), "int8": (6, "int_val"), "int64": (9, "int64_val"), "bool": (10, "bool_val"),
    "uint16": (17, "int_val"), "float16": (19, "half_val"), "uint32": (22, "uint32_val"), "uint64": (23, "uint64_val"),
}  # fmt: skip
SCALARS = {"plugin_data": {"plugin_name": "scalars"}}


def value(tensor: dict[str, Any] | TensorProto, metadata: dict[str, Any] | None = SCALARS) -> Summary.Value:
    return Summary.Value(tag="loss", tensor=tensor, metadata=metadata)


def shape(*sizes: int) -> dict[str, Any]:
    return {"dim": [{"size": size} for size in sizes]}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("sizes", [(), (1,), (1, 1)])
def test_a_number_of_any_type_is_read_from_bytes_and_from_its_field(name: str, sizes: tuple[int, ...]) -> None:
    dtype, field = TYPES[name]
    for number in (0, 1, 3 if name != "bool" else 1, -2 if name.startswith(("i", "f")) else 0):
        array = np.array(number, name)
        in_field = int(array.view("<u2")) if name == "float16" else array.item()
        for content in ({"tensor_content": array.tobytes()}, {field: [in_field]}):
            assert number_of(value({"dtype": dtype, "tensor_shape": shape(*sizes), **content}), {}) == number


@pytest.mark.parametrize("number", [1.5, -0.0078125, math.inf])
def test_bfloat16_is_the_upper_half_of_float32(number: float) -> None:
    bits = int(np.float32(number).view("<u4")) >> 16
    for content in ({"tensor_content": bits.to_bytes(2, "little")}, {"half_val": [bits]}):
        assert number_of(value({"dtype": 14, **content}), {}) == number


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_values(number: float) -> None:
    for dtype in ("float16", "float32", "float64"):
        read = number_of(value({"dtype": TYPES[dtype][0], "tensor_content": np.array(number, dtype).tobytes()}), {})
        np.testing.assert_equal(read, number)
    np.testing.assert_equal(number_of(Summary.Value(tag="loss", simple_value=number), {}), number)


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": 1, "float_val": [1.0, 2.0], "tensor_shape": shape(2)},
        {"dtype": 1, "tensor_shape": shape(0)},
        {"dtype": 1},
        {"dtype": 1, "tensor_content": b"odd"},
        {"dtype": 7, "string_val": [b"text"]},
        {"dtype": 8, "scomplex_val": [1.0, 2.0]},
        {"dtype": 20},
    ],
    ids=str,
)
def test_a_tensor_that_is_not_one_real_number_is_no_scalar(tensor: dict[str, Any]) -> None:
    assert number_of(value(tensor), {}) is None


@pytest.mark.parametrize(
    ("metadata", "drawn"),
    [
        (SCALARS, True),
        ({"data_class": 1}, True),
        ({"data_class": 1, "plugin_data": {"plugin_name": "mine"}}, True),
        ({"data_class": 2, "plugin_data": {"plugin_name": "scalars"}}, False),
        ({"plugin_data": {"plugin_name": "hparams"}}, False),
        ({"plugin_data": {"plugin_name": "pr_curves"}}, False),
        ({}, False),
        (None, False),
    ],
    ids=str,
)
def test_the_first_metadata_of_a_tag_decide_whether_it_is_drawn(metadata: dict[str, Any] | None, drawn: bool) -> None:
    known: dict[str, bool] = {}
    tensor = {"dtype": 1, "float_val": [0.5]}
    assert number_of(value(tensor, metadata), known) == (0.5 if drawn else None)
    assert number_of(value(tensor, None), known) == (0.5 if drawn else None), "later events have no metadata"


def test_the_tag_of_an_old_tensor_is_the_name_of_its_node() -> None:
    assert tag_of(Summary.Value(node_name="loss", tensor=TensorProto(dtype=1))) == "loss"
    assert tag_of(Summary.Value(node_name="loss", simple_value=1.0)) == ""


def test_other_values_have_a_kind() -> None:
    assert kind_of(Summary.Value(image=Summary.Image())) == "images"
    assert kind_of(value({"dtype": 1}, {"plugin_data": {"plugin_name": "hparams"}})) == "hparams"
    assert kind_of(value({"dtype": 1}, {"plugin_data": {"plugin_name": "anything"}})) == "other values"


def test_tensors_without_metadata_are_drawn_after_a_simple_value() -> None:
    drawn: dict[str, bool] = {}
    assert number_of(Summary.Value(tag="loss", simple_value=1.0), drawn) == 1.0
    assert number_of(value({"dtype": 1, "float_val": [0.5]}, None), drawn) == 0.5
