"""The device of a simulation: a machine with an NVIDIA driver does not train on its CPU by accident. No simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb import RlnbError
from rlnb.machine import cuda
from rlnb.worker.isaac.device import torch_device

torch = pytest.importorskip("torch")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let torch find no GPU; return the folder of the driver's files, which are missing."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(cuda, "FILES", tuple(str(tmp_path / name) for name in ("version", "nvidiactl", "dxg")))
    monkeypatch.setattr(cuda, "WSL_FILE", str(tmp_path / "dxg"))
    return tmp_path


def old_driver() -> None:
    raise RuntimeError("The NVIDIA driver on your system is too old (found version 12020). Please update it.")


@pytest.mark.parametrize("name", ["version", "nvidiactl"])
def test_a_gpu_that_torch_cannot_use_is_an_error_with_torchs_reason(
    files: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (files / name).touch()
    monkeypatch.setattr(torch.cuda, "init", old_driver)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(RlnbError) as refusal:
        torch_device("auto")
    assert str(refusal.value) == (
        f"This machine has an NVIDIA driver, but torch {torch.__version__} is not able to use a GPU: The NVIDIA driver "
        "on your system is too old (found version 12020). Please update it. Use a driver that supports CUDA 13.0, a "
        'container with its GPUs (--gpus all, --nv), or device="cpu". CUDA_VISIBLE_DEVICES="" hides all GPUs, also '
        "from evaluations."
    )


def test_a_cpu_build_of_torch_is_named(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cpu_build() -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")

    (files / "version").touch()
    monkeypatch.setattr(torch.cuda, "init", cpu_build)
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RlnbError, match=r"Torch not compiled with CUDA enabled\. Use a build of torch with CUDA"):
        torch_device("auto")


@pytest.mark.parametrize("name", ["cpu", "any"])
def test_the_cpu_is_used_where_it_was_requested(files: Path, name: str) -> None:
    (files / "version").touch()
    assert torch_device(name) == "cpu"


@pytest.mark.parametrize(("variable", "hidden"), [("", True), ("-1", True), ("-1,0", True), ("5", False)])
def test_a_user_who_hides_all_gpus_gets_the_cpu(
    files: Path, monkeypatch: pytest.MonkeyPatch, variable: str, hidden: bool
) -> None:
    (files / "version").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    if hidden:
        assert torch_device("auto") == "cpu"
    else:
        with pytest.raises(RlnbError, match="has an NVIDIA driver"):
            torch_device("auto")


def test_wsl_without_nvidias_library_has_no_nvidia_gpu(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "dxg").touch()  # WSL has it for Intel's and AMD's GPUs too
    monkeypatch.setattr(cuda, "LIBRARY", "libmissing.so.1")
    assert torch_device("auto") == "cpu"
    monkeypatch.setattr(cuda, "LIBRARY", "libc.so.6")
    with pytest.raises(RlnbError, match="has an NVIDIA driver"):
        torch_device("auto")


def test_auto_without_a_driver_is_the_cpu(files: Path) -> None:
    assert torch_device("auto") == "cpu"


def test_a_rank_takes_the_gpu_of_its_number(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [torch_device(name) for name in ("auto", "cuda", "cuda:2", "any")] == [
        "cuda:0",
        "cuda:0",
        "cuda:2",
        "cuda:0",
    ]
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert [torch_device(name) for name in ("auto", "cuda", "cuda:2", "cpu")] == ["cuda:3", "cuda:3", "cuda:2", "cpu"]
    assert [torch_device(name, 1) for name in ("auto", "cuda", "cuda:2", "cpu")] == [
        "cuda:1",
        "cuda:1",
        "cuda:2",
        "cpu",
    ]
