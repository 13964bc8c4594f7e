"""Small folders of event files, each written by the real package, in that package's own environment.

    python benchmarks/event_writers.py PACKAGE FOLDER
    python benchmarks/event_writers.py read FOLDER

The second form prints what TensorBoard reads from the folder: folder, tag, and step and value of each point. This file
imports nothing of rlnb.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 6


def curve(step: int) -> float:
    """Return a value that float32 rounds, with NaN and infinities."""
    return {3: math.nan, 4: math.inf}.get(step, 1 / (step + 3))


def of_summary_writer(folder: Path, writer: Any, **options: Any) -> None:
    """Write what torch's and tensorboardX's ``SummaryWriter`` have in common."""
    with writer(str(folder), **options) as log:
        for step in range(STEPS):
            log.add_scalar("loss/total", curve(step), step)
            log.add_scalars("loss", {"policy": step + 0.25, "value": -step}, step)
            log.add_histogram("weights", np.linspace(0, 1, 5) * step, step)
        log.add_image("picture", np.zeros((3, 2, 2), np.uint8), 0)
        log.add_text("note", "text", 0)
        log.add_pr_curve("pr", np.array([0, 1, 1]), np.array([0.1, 0.6, 0.9]), 0)
        log.add_hparams({"lr": 0.1, "name": "a"}, {"hparam/score": 0.5})


def torch(folder: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    of_summary_writer(folder, SummaryWriter)
    with SummaryWriter(str(folder / "purged")) as log:
        for step in range(10):
            log.add_scalar("reward", step, step)
    with SummaryWriter(str(folder / "purged"), purge_step=5, filename_suffix=".later") as log:
        for step in range(5, 12):
            log.add_scalar("reward", 100 + step, step)
    with SummaryWriter(str(folder / "types")) as log:
        for step in range(3):
            log.add_scalar("tensor", 0.1 * step, step, new_style=True)
            log.add_scalar("double", 0.1 * step, step, new_style=True, double_precision=True)


def tensorboardx(folder: Path) -> None:
    from tensorboardX import SummaryWriter

    of_summary_writer(folder, SummaryWriter, flush_secs=1)


def tensorflow(folder: Path) -> None:
    import tensorflow as tf

    for name, offset in (("train", 0), ("validation", 100)):
        with tf.summary.create_file_writer(str(folder / name)).as_default():
            for step in range(STEPS):
                tf.summary.scalar("loss", curve(step) + offset, step)
                tf.summary.histogram("weights", [1.0, 2.0], step)
            tf.summary.text("note", "text", 0)
            tf.summary.image("picture", np.zeros((1, 2, 2, 3)), 0)
    with tf.summary.create_file_writer(str(folder / "types")).as_default():
        metadata = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
        types = (
            "float16",
            "float32",
            "float64",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "bool",
        )
        for step in range(3):
            for name in types:
                tf.summary.write(name, tf.constant(np.array(step + 1, name)), step, metadata)
            tf.summary.write("vector of one", tf.constant([step + 0.5]), step, metadata)


def keras(folder: Path) -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    x, y = np.ones((8, 2)), np.zeros(8)
    board = keras.callbacks.TensorBoard(str(folder), histogram_freq=1, write_graph=False, update_freq=1)
    model.fit(x, y, validation_data=(x, y), epochs=4, batch_size=4, verbose=0, callbacks=[board])


def clu(folder: Path) -> None:
    from clu import metric_writers

    for name in ("train", "eval"):
        writer = metric_writers.SummaryWriter(str(folder / name))
        writer.write_hparams({"lr": 0.1})
        for step in range(STEPS):
            writer.write_scalars(step, {"loss": curve(step), "accuracy": 0.1 * step})
            writer.write_histograms(step, {"weights": np.ones(4)}, {"weights": 2})
        writer.write_texts(0, {"note": "text"})
        writer.close()


def lightning(folder: Path) -> None:
    import lightning as pl
    import torch as th
    from lightning.pytorch.loggers import TensorBoardLogger

    class Model(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.save_hyperparameters({"lr": 0.1})
            self.layer = th.nn.Linear(2, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            loss = self.layer(batch).square().mean()
            self.log("loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("hp_metric", self.layer(batch).mean())

        def configure_optimizers(self) -> Any:
            return th.optim.SGD(self.parameters(), 0.1)

    for _ in range(2):  # version_0 and version_1
        data = th.utils.data.DataLoader(th.ones(8, 2), batch_size=4)
        logger = TensorBoardLogger(str(folder))
        pl.Trainer(
            max_epochs=3, logger=logger, log_every_n_steps=1, enable_checkpointing=False, accelerator="cpu",
            enable_progress_bar=False, enable_model_summary=False,
        ).fit(Model(), data, data)  # fmt: skip


def read(folder: Path) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Return what TensorBoard reads: folder to tag to step and value of each point.

    These are the points of the multiplexer behind TensorBoard's pages, without its sampling. That multiplexer passes
    over the first restart of a folder. For folders with a restart, the points are those of ``EventAccumulator``.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_SCALAR
    from tensorboard.util.tensor_util import make_ndarray

    multiplexer = EventMultiplexer(size_guidance={"tensors": 0}).AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    runs: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for run, tags in multiplexer.AllSummaryMetadata().items():
        for tag, metadata in tags.items():
            if metadata.data_class == DATA_CLASS_SCALAR and metadata.plugin_data.plugin_name == "scalars":
                points = [
                    (event.step, float(make_ndarray(event.tensor_proto).item()))
                    for event in multiplexer.Tensors(run, tag)
                ]
                runs.setdefault(run, {})[tag] = points
        files = sorted((folder / run).glob("*tfevents*"))
        if any(event.HasField("session_log") for path in files for event in LegacyEventFileLoader(str(path)).Load()):
            accumulator = EventAccumulator(str(folder / run), size_guidance={"scalars": 0}).Reload()
            runs[run] = {
                tag: [(p.step, p.value) for p in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]
            }
    return runs


def main(what: str, folder: Path) -> None:
    if what == "read":
        print(json.dumps(read(folder)))
    else:
        globals()[what](folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
