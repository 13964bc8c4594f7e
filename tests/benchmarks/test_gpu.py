"""The parts of the work on a GPU: their rows, their time, and what a machine without internet needs."""

from __future__ import annotations

import ensurepip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
BENCHMARKS = REPO / "benchmarks"


@pytest.fixture(autouse=True)
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, list[str]]]:
    """Write results to a file of the test; return a function that reads them: the cells of each row by its name."""
    path = tmp_path / "rows.md"
    monkeypatch.setenv("RLNB_RESULTS", str(path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPO), str(BENCHMARKS)]))
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def read() -> dict[str, list[str]]:
        from results import rows_of

        lines = rows_of(path) if path.exists() else []
        rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines]
        return {name: cells for name, *cells in rows}

    return read


def test_a_measure_that_fails_has_a_row_and_the_others_go_on(rows: Callable[[], dict[str, list[str]]]) -> None:
    from gpu.part import Part, run

    def fails(part: Part, seconds: float) -> None:
        raise RuntimeError("out of memory\nand more")

    part = Part(device="cuda:0", minutes=1.0)
    measures = [("this", fails), ("that", lambda part, seconds: part.record("that", f"{seconds:.0f} s", "any", True))]
    assert not run(part, "part 1", measures)
    assert rows()["GPU, this"][:3] == ["not measured: RuntimeError: out of memory", "it is measured", "NO"]
    assert rows()["GPU, that"][0] in ("60 s", "59 s")
    assert "0 modules of kernels" in rows()["GPU, part 1: time"][0]


def test_what_there_is_no_time_for_has_a_row(rows: Callable[[], dict[str, list[str]]]) -> None:
    from gpu.part import Part, run

    def lasts(part: Part, seconds: float) -> None:
        time.sleep(0.2)

    assert not run(Part(device="cpu", minutes=0.1 / 60.0), "part 1", [("this", lasts), ("that", lasts)])
    assert rows()["rehearsal on a CPU, that"][0] == "not measured: the time of the part was over"


def test_a_measure_without_enough_pairs_has_a_row(rows: Callable[[], dict[str, list[str]]]) -> None:
    from gpu.part import Part, run

    def few(part: Part, seconds: float) -> None:
        part.record_pairs("ratio of something", [(1.0, 1.0)], "1/s", at_least=0.98, low=0.95)

    assert not run(Part(device="cuda:0", minutes=1.0), "part 1", [("this", few)])
    assert rows()["GPU, this"][0] == "not measured: TimeoutError: fewer than 3 pairs in its share of the time"


EQUAL = [(1.0 + number / 1000, 1.0) for number in range(10)]


def test_a_row_of_pairs_holds_from_ten_on(rows: Callable[[], dict[str, list[str]]]) -> None:
    from gpu.part import Part

    part = Part(device="cuda:0", minutes=1.0)
    for count, held in ((2, None), (9, "NO"), (10, "yes")):
        part.record_pairs("ratio", EQUAL[:count], "1/s", at_least=0.98, low=0.95)
        assert rows().get("GPU, ratio", [None, None, None])[2] == held
    part.record_pairs("ratio", [(0.9 * one, other) for one, other in EQUAL], "1/s", at_least=0.98, low=0.95)
    assert rows()["GPU, ratio"][2] == "NO"
    part.record_pairs("ratio", EQUAL, "1/s, 0 films", at_least=0.98, low=0.95, proved=False)
    assert rows()["GPU, ratio"][2] == "NO"


KILLED = """
import time
from gpu.part import Part, run

def measure(part, seconds):
    part.record("first", "1", "any", True)
    print("recorded", flush=True)
    time.sleep(60.0)

run(Part(device="cpu", minutes=1.0), "part 1", [("first", measure), ("second", measure)])
"""


def test_a_part_that_is_killed_keeps_its_rows(rows: Callable[[], dict[str, list[str]]]) -> None:
    with subprocess.Popen([sys.executable, "-P", "-c", KILLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "recorded\n" in process.stdout
        process.send_signal(signal.SIGKILL)
    assert rows()["rehearsal on a CPU, first"][0] == "1"


def test_rows_of_another_file_replace_those_of_the_same_name(
    rows: Callable[[], dict[str, list[str]]], tmp_path: Path
) -> None:
    from results import record

    record("one", "1", "any", True)
    record("two", "2", "any", True)
    borrowed = tmp_path / "borrowed.md"
    shutil.copy(tmp_path / "rows.md", borrowed)
    record("two", "3", "any", True)
    subprocess.run([sys.executable, "-P", BENCHMARKS / "results.py", borrowed], check=True)
    assert {name: cells[0] for name, cells in rows().items()} == {"one": "1", "two": "2"}
    assert (tmp_path / "rows.md").read_text().count("| two |") == 1


def test_compilation_is_the_time_between_source_and_binary(tmp_path: Path) -> None:
    from gpu.kernels import compiled_since

    begin_s = time.time()

    def module(name: str, source_s: float, binary_s: float, suffix: str) -> None:
        folder = tmp_path / "1.17.0" / name
        folder.mkdir(parents=True)
        for path, at_s in ((folder / f"{name}{suffix[0:0]}.cu", source_s), (folder / f"{name}{suffix}", binary_s)):
            path.touch()
            os.utime(path, (at_s, at_s))

    module("wp_one", begin_s + 1.0, begin_s + 3.5, ".sm90.cubin")
    module("wp_two", begin_s + 1.0, begin_s + 1.5, ".sm75.ptx")
    module("wp_before", begin_s - 9.0, begin_s - 5.0, ".sm90.cubin")
    module("wp_copied", begin_s + 1.0, begin_s + 1.0, ".sm90.cubin")
    assert compiled_since(begin_s, tmp_path) == (2, pytest.approx(3.0))


@pytest.fixture
def pieces(tmp_path: Path) -> Path:
    """Return a folder with pieces of 0.1 MiB of a checkout, a wheel, and pip's wheel that Python brings."""
    from gpu.pieces import pack

    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "strange-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("strange.py", "number = 7\n")
        wheel.writestr("strange-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
        wheel.writestr("strange-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("strange-1.0.dist-info/RECORD", "strange.py,,\nstrange-1.0.dist-info/RECORD,,\n")
    (pip,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    shutil.copy(pip, wheels)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "README.md").write_text("rlnb")
    folder = tmp_path / "pieces"
    pack(folder, 0.1, [(checkout, "rlnb"), (wheels, "wheels")])
    return folder


def prepare(pieces: Path, folder: Path, *others: Path) -> subprocess.CompletedProcess[str]:
    """Prepare a machine in an empty folder, without a network where this user may take it away."""
    folder.mkdir()
    without_network = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []
    argv = [*without_network, sys.executable, str(pieces / "prepare.py"), *map(str, others)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_machine_is_prepared_with_one_command_and_without_a_network(pieces: Path, tmp_path: Path) -> None:
    sizes = [path.stat().st_size for path in pieces.glob("piece-*")]
    assert len(sizes) > 10
    assert max(sizes) <= 0.1 * 2**20
    done = prepare(pieces, tmp_path / "machine")
    assert done.returncode == 0, done.stderr
    prepared = tmp_path / "machine" / "rlnb-gpu"
    code = "import os, strange; print(strange.number, os.environ['RLNB_PREBUILT'])"
    answer = subprocess.check_output([prepared / "python", "-P", "-c", code], text=True, cwd=tmp_path).split()
    assert answer == ["7", str(prepared / "prebuilt")]
    assert (prepared / "rlnb" / "README.md").read_text() == "rlnb"


@pytest.mark.slow
def test_pieces_may_come_in_several_folders(pieces: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in sorted(pieces.glob("piece-*"))[3:8]:
        shutil.move(path, other)
    done = prepare(pieces, tmp_path / "machine", other)
    assert done.returncode == 0, done.stderr


def test_every_missing_or_damaged_piece_is_named_before_anything_is_written(pieces: Path, tmp_path: Path) -> None:
    (pieces / "piece-002").unlink()
    (pieces / "piece-005").write_bytes(b"half")
    done = prepare(pieces, tmp_path / "machine")
    assert done.returncode != 0
    assert "piece-002 is missing" in done.stderr
    assert "piece-005 is damaged" in done.stderr
    assert not [*(tmp_path / "machine").iterdir()]


def test_packages_of_patterns_are_left_out() -> None:
    from gpu.pieces import packages

    names = {requirement.partition("==")[0] for requirement in packages(["torch*", "nvidia-*"])}
    assert {"isaaclab", "newton", "pytest"} <= names
    assert not [name for name in names if name.startswith(("torch", "nvidia-", "rlnb"))]


def test_the_index_names_the_pieces_in_their_order(pieces: Path) -> None:
    index = json.loads((pieces / "pieces.json").read_text())
    assert [piece["name"] for piece in index] == sorted(path.name for path in pieces.glob("piece-*"))
    assert sum(piece["bytes"] for piece in index) == sum(path.stat().st_size for path in pieces.glob("piece-*"))


@pytest.mark.slow
@pytest.mark.isaaclab
def test_a_part_of_the_benchmarks_is_rehearsed_on_a_cpu(rows: Callable[[], dict[str, list[str]]]) -> None:
    """The memory of one training of each task, since its time is over early."""
    make = ["make", "bench-gpu", "DEVICE=cpu", "PART=6", "MINUTES=0.5", f"PYTHON={sys.executable}"]
    assert subprocess.run(make, cwd=REPO, check=False).returncode in (0, 2)
    measured = [cells[0] for name, cells in rows().items() if "memory of the processes" in name]
    assert measured
    assert all("GiB" in value for value in measured)
    assert [name for name in rows() if name.startswith("rehearsal on a CPU, part 6 of the benchmarks")]


@pytest.mark.slow
@pytest.mark.isaaclab
def test_a_part_of_the_tests_is_rehearsed_on_a_cpu(rows: Callable[[], dict[str, list[str]]]) -> None:
    """The first test of the driver; the others do not begin in time."""
    make = ["make", "test-gpu", "DEVICE=cpu", "PART=1", "MINUTES=0.01", f"PYTHON={sys.executable}"]
    assert subprocess.run(make, cwd=REPO, check=False).returncode == 0
    text = rows()["rehearsal on a CPU, part 1 of the tests (make test-gpu)"][0]
    passed, not_run = (int(re.search(rf"(\d+) {what}", text)[1]) for what in ("passed", "not run"))
    assert passed >= 1
    assert not_run >= 4
