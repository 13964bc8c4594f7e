"""JAX on a GPU beside torch, without either GPU or JAX."""

from __future__ import annotations

import pytest

import rlnb

torch = pytest.importorskip("torch")
from rlnb_skrl import jax_gpu  # noqa: E402


@pytest.mark.parametrize(("cuda", "package"), [("13.0", "jax[cuda13]"), ("12.8", "jax[cuda12]")])
def test_jax_is_installed_for_the_cuda_of_torch(monkeypatch: pytest.MonkeyPatch, cuda: str, package: str) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(rlnb.RlnbError) as caught:
        jax_gpu.check("cuda:0", "cpu")
    assert f"Install '{package}' there" in str(caught.value)


@pytest.mark.parametrize(("device", "default_backend"), [("cuda:0", "gpu"), ("cpu", "cpu")])
def test_jax_on_the_device_of_the_env_is_accepted(device: str, default_backend: str) -> None:
    jax_gpu.check(device, default_backend)
