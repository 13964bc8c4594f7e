"""What the agent looks at while a training is under way: the load on its node, and the rules of alerts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from rlnb.node.alerts import Lookout
from rlnb.node.usage import Usage
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.storage import files


@contextlib.contextmanager
def sampling(job: JobDir, node: int, gpus: Sequence[str], *, is_script: bool) -> Iterator[Callable[[], None]]:
    """Yield a function that samples the load on this node and looks for alerts, if the job is a training.

    Args:
        job: Folder of the job.
        node: Number of this node. The first one looks for alerts.
        gpus: Indices or UUIDs of the GPUs that the job may use.
        is_script: Whether the job is a script, which is sampled at once. A worker is sampled only once it has started,
            since its start needs every core.
    """
    if job.kind != "train":
        yield lambda: None
        return
    usage: Usage | None = None
    lookout = Lookout(job) if node == 0 else None

    def tick() -> None:
        nonlocal usage
        if usage is not None:
            usage.tick()
            if lookout is not None:
                lookout.tick()
        elif is_script or files.there(job.started):
            usage = Usage(run_dir_of(job.path).system, node, gpus)

    try:
        yield tick
    finally:
        if usage is not None:
            usage.close()
