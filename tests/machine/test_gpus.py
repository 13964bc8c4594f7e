"""GPUs are counted as CUDA counts them, against a stand-in for the driver library."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlnb.machine import cuda, gpus
from rlnb.machine.gpus import Answer, Gpu, GpuFacts, gpu_facts

Machine = Callable[..., None]
MODEL = "NVIDIA Fake"


def uuid(end: str, kind: str = "GPU") -> str:
    return f"{kind}-00000000-0000-0000-0000-0000000000{end}"


@pytest.mark.parametrize(
    ("uuids", "visible", "expected"),
    [
        ("0a,0b", None, [("0", "0a"), ("1", "0b")]),
        ("0a,0b,0c,0d", "2, 3", [("2", "0c"), ("3", "0d")]),
        ("0a,0b", "", []),
        ("0a,0b", "-1", []),
        ("0a,0b", "0,-1,1", [("0", "0a")]),
        ("0a", "0,1,2,3", [("0", "0a")]),
        ("0a", "3", []),
        ("0a,0b", "1,1", []),
        ("0a", "NoDevFiles", []),
        ("0a,0b", uuid("0b"), [(uuid("0b"), "0b")]),
    ],
)
def test_the_gpus_are_those_that_cuda_offers(
    machine: Machine, uuids: str, visible: str | None, expected: list[tuple[str, str]]
) -> None:
    machine(uuids, visible)
    assert gpus.answer().gpus == tuple(Gpu(name, uuid(end), MODEL) for name, end in expected)
    assert gpus.answer().error == ("" if expected else "CUDA_ERROR_NO_DEVICE")


def test_a_container_with_one_gpu_of_eight_has_one(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine("0a")  # the kernel module lists the host's GPUs in every container
    monkeypatch.setattr(os, "listdir", lambda path: ["gpu"] * 8 if path == gpus.LISTING else [])
    assert gpus.gpu_count() == 1


def test_cuda_numbers_gpus_in_the_order_that_the_user_set(machine: Machine) -> None:
    machine("0a,0b")
    assert [gpu.uuid for gpu in gpus.answer().gpus] == [uuid("0a"), uuid("0b")]
    machine("0a,0b", order="PCI_BUS_ID")
    assert [gpu.uuid for gpu in gpus.answer().gpus] == [uuid("0b"), uuid("0a")]


def test_cuda_offers_one_mig_slice_to_a_process(machine: Machine) -> None:
    names = [uuid(end, "MIG") for end in ("1a", "1b")]
    machine("1am,1bm", ",".join(names))
    assert gpus.answer().gpus == (Gpu(names[0], names[0], "NVIDIA Fake MIG 1g.5gb"),)


def test_the_beginning_of_a_uuid_is_completed(machine: Machine) -> None:
    machine("0a,0b", "GPU-00000000-0000-0000-0000-00000000000a")
    assert gpus.answer().gpus[0].slot == uuid("0a")


@pytest.mark.parametrize(("error", "text"), [(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), (4242, "CUDA error 4242")])
def test_an_error_of_the_driver_is_passed_on(machine: Machine, error: int, text: str) -> None:
    machine("0a", error=error)
    assert gpus.answer() == Answer(error=text)


def test_the_driver_is_asked_once_for_each_environment(machine: Machine, tmp_path: Path) -> None:
    machine("0a,0b")
    counts = [gpus.gpu_count() for _ in range(3)]
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"  # monkeypatch restores it
    counts += [gpus.gpu_count() for _ in range(3)]
    assert counts == [2, 2, 2, 1, 1, 1]
    assert (tmp_path / "calls").read_text() == "init\n" * 2


def test_the_driver_is_not_loaded_into_this_process(machine: Machine) -> None:
    machine("0a")
    assert gpus.gpu_count() == 1
    assert cuda.LIBRARY not in Path("/proc/self/maps").read_text()


def test_a_machine_without_a_driver_starts_no_process(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("0a")
    monkeypatch.setattr(cuda, "FILES", (str(tmp_path / "missing"),))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    assert gpus.visible_gpus() == ()


@pytest.mark.parametrize(
    ("count", "visible", "names"),
    [
        (2, None, ["0", "1"]),
        (4, "2,3", ["2", "3"]),
        (4, "", []),
        (1, "-1", []),
        (2, "0,-1,1", ["0"]),
        (2, "0,0", []),
        (2, "GPU-ab, GPU-cd", ["GPU-ab", "GPU-cd"]),
        (1, "MIG-ab,MIG-cd", ["MIG-ab", "MIG-cd"]),
    ],
)
def test_without_the_driver_library_the_kernel_module_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, visible: str | None, names: list[str]
) -> None:
    (tmp_path / cuda.LIBRARY).write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    gpus._answers.clear()
    monkeypatch.setattr(os, "listdir", lambda path: ["gpu"] * count if path == gpus.LISTING else [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.name for gpu in gpus.answer().gpus] == names


def test_a_driver_that_crashes_or_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(interpreter))
    interpreter.write_text("#!/bin/sh\nkill -SEGV $$\n")
    interpreter.chmod(0o755)
    gpus._answers.clear()
    assert gpus.answer() == Answer(error="the NVIDIA driver gave no answer (exit status -11)")
    interpreter.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(gpus, "TIMEOUT_S", 0.2)
    assert gpus.answer() == Answer(error="the NVIDIA driver did not answer within 0 s"), "no error is kept"


def test_the_facts_about_another_interpreter_need_no_rlnb_there(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("0a,0b")
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Release Build\n")
    monkeypatch.setattr(cuda, "VERSION_FILE", str(tmp_path / "version"))
    facts = gpu_facts([sys.executable, "-I", "-S"])
    assert facts == GpuFacts(names=(MODEL, MODEL), driver="580.65.06", driver_cuda="13.0", torch_cuda=None)


def test_an_interpreter_without_an_answer_is_an_error_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^exit status 4: last words$"):
        gpu_facts(["/bin/sh", "-c", "echo first >&2; echo last words >&2; exit 4"])
    with pytest.raises(subprocess.TimeoutExpired):
        gpu_facts(["/bin/sh", "-c", "exec sleep 60"], timeout_s=0.2)
    with pytest.raises(OSError, match="python"):
        gpu_facts([str(tmp_path / "python")])


def test_a_slot_has_the_name_of_its_gpu() -> None:
    assert Gpu("2", uuid("0c")).slot == uuid("0c")
    assert Gpu("2").slot == "cuda-2"
    assert "/" not in Gpu("MIG-GPU-ab/1/0").slot
