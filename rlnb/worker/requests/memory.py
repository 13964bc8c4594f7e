"""The GPU memory of the living simulator, which training runs need between its requests."""

from __future__ import annotations

import gc
import sys


def free() -> None:
    """Give the memory of closed envs back to the GPU's driver.

    In a process that has not used a GPU, do nothing: a call of CUDA would take memory. The process keeps its CUDA
    contexts, and JAX keeps all memory that it has used.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    import warp

    gc.collect()
    try:
        torch.cuda.empty_cache()
        for device in warp.get_cuda_devices():
            if device.has_context and device.is_mempool_supported:
                warp.set_mempool_release_threshold(device, 0)  # bytes that the pool keeps at a synchronisation
        warp.synchronize()
    except RuntimeError as exc:  # after an error in a kernel, all calls of CUDA fail; the next request reports it
        sys.stderr.write(f"The GPU memory was not freed: {exc}\n")
