"""The kernels of Newton's physics and cameras: how long Warp compiled them, and how to compile them ahead of time.

    python -m gpu.kernels --arch 90 --into FOLDER [TASK ...]    # with benchmarks/ on PYTHONPATH

compiles the kernels of tasks for GPUs of an architecture on a machine without one: Warp brings NVIDIA's compiler. The
tasks run on the CPU, and each module that Warp loads for the CPU is compiled for the GPU as well. Kernels that Newton
uses on GPUs only are not among them; a GPU compiles those when it needs them. A process with ``RLNB_PREBUILT=FOLDER``
takes the kernels from there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rlnb.worker.assets.packs import warp_cache

SOURCES, BINARIES = (".cu", ".cpp"), (".cubin", ".ptx", ".o")
"""Suffixes of the files that Warp writes before and after it compiles a module."""
WARP = "1.17"
"""Version of Warp whose private parts :func:`compile_also` knows."""
TASKS = (
    "Isaac-Cartpole-Direct",
    "Isaac-Ant-Direct",
    "Isaac-Cartpole-Camera-Direct",
    "Isaac-Reorient-Cube-Shadow-Camera-Direct",
)
"""Tasks of the tests and benchmarks on a GPU."""


def compiled_since(begin_s: float, folder: Path | None = None) -> tuple[int, float]:
    """Return how many modules were compiled since a time, and the seconds that this took.

    Warp writes the source of a module into its cache, compiles it, and writes the binary beside it. So the time between
    the two files is that of the compilation. It is summed over all processes, which may have compiled at the same time.
    Files that were copied into the cache count nothing.

    Args:
        begin_s: Seconds since the epoch.
        folder: Cache of Warp; None for this user's.
    """
    took_s = list(_times_s(begin_s, folder or warp_cache()))
    return len(took_s), sum(took_s)


def _times_s(begin_s: float, folder: Path) -> Iterator[float]:
    for module in folder.glob("*/wp_*"):
        files = [(path.suffix, path.stat().st_mtime) for path in module.iterdir()]
        sources = [at_s for suffix, at_s in files if suffix in SOURCES]
        for suffix, at_s in files:
            if suffix in BINARIES and at_s >= begin_s and sources and at_s - sources[0] > 0.005:
                yield at_s - sources[0]


def compile_also(arch: int, folder: Path) -> Callable[[], list[str]]:
    """Compile each module that Warp loads for a CPU from now on for a GPU as well.

    Uses private parts of Warp. On a CPU, a launch loads a module with a block of one thread, so the block of the GPU is
    taken from the call.

    Args:
        arch: Architecture of the GPU, e.g. 90 for an H100 or H200.
        folder: Where the binaries go, in the layout of Warp's cache.

    Returns:
        A function that compiles what was seen, and returns the modules that could not be compiled.
    """
    import warp

    if not warp.config.version.startswith(f"{WARP}."):
        raise SystemExit(
            f"Kernels are compiled ahead with Warp {WARP} only, and this is {warp.config.version}. Omit ARCH."
        )
    from warp._src import context

    seen: dict[tuple[int, int], tuple[Any, int]] = {}
    launch = context.launch

    def launching(kernel: Any, *args: Any, **options: Any) -> Any:
        result = launch(kernel, *args, **options)
        module = kernel.module
        block = options.get("block_dim", 256)
        seen[id(module), block] = module, block
        return result

    context.launch = warp.launch = launching

    def finish() -> list[str]:
        failed = []
        version = warp.config.version
        for module, block in seen.values():
            options = module.resolve_options(warp.config, block_dim=block)
            name = module.get_module_identifier(block_dim=block)
            try:
                module._compile(None, folder / version / name, output_arch=arch, use_ptx=False, options=options)
            except Exception as exc:
                failed.append(f"{module.name}: {exc}")
        return failed

    return finish


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, required=True, help="90 for an H100 or H200, 89 for an RTX 4090")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("tasks", nargs="*", default=TASKS)
    arguments = parser.parse_args()
    from rlnb.worker.isaac import isaaclab

    isaaclab.start()
    finish = compile_also(arguments.arch, arguments.into / "warp")
    for task in arguments.tasks:
        step(task)
    failed = finish()
    print(f"{len([*arguments.into.rglob('*.cubin')])} modules compiled for sm_{arguments.arch}, {len(failed)} failed")
    print("\n".join(failed), file=sys.stderr)


def step(task: str) -> None:
    """Step a few envs of a task, with a camera."""
    import torch

    import rlnb
    from rlnb.worker.actions import actions
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment

    presets = ("newton_renderer",) if "Camera" in task else ()
    with environment(rlnb.Task(id=task, num_envs=4, presets=presets), None, device="cpu") as (env, _):
        raw = isaaclab.task_env(env)
        env.reset(seed=0)
        with torch.inference_mode():
            for _ in range(3):
                raw.step(actions(raw, "random"))


if __name__ == "__main__":
    main()
