"""One episode: a few trainings, a few faults, and the rules."""

from __future__ import annotations

import collections
import dataclasses
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import rlnb
from chaos.faults import FAULTS
from chaos.world import ECHO, Subject, Violation, World

ATTEMPTS = 12
"""Faults to try until one fits the moment."""


def episode(
    folder: Path,
    seed: int,
    only: Sequence[str],
    counts: collections.Counter[str],
    *,
    subject: Subject = ECHO,
    disk: bool = False,
    length: int = 1,
) -> list[Violation]:
    """Run an episode and return the rules that did not hold.

    Args:
        folder: Folder for the episode's root.
        seed: Seed of its decisions; their timing is not reproducible.
        only: Names of the faults to choose from.
        counts: Faults by name, to which the episode's are added.
        subject: The trainings.
        disk: Whether the root is a small disk of its own.
        length: Factor of the trainings' iterations, so that more faults hit one that trains.
    """
    world = World(folder, seed, dataclasses.replace(subject, length=length), disk=disk)
    rng = world.rng
    try:
        for _ in range(rng.choice([1, 2, 3]) if subject.library == "echo" else 1):
            world.train(rng.randrange(15, 50), keep=rng.choice([None, None, 2]), tags=["a"], **_options(world))
        for _ in range(rng.randrange(3, 6)):
            time.sleep(rng.choice([0.0, 0.1, 0.4, 0.8]) * rng.random() * subject.pause + 0.02)
            _one(world, only, counts)
            world.look()
        time.sleep(rng.random() * 0.5)
        world.heal()
        world.settle()
        if not world.stuck:
            world.resume_all()
            world.settle()
    except Exception:
        world.report("the episode itself", traceback.format_exc())
    finally:
        world.close()
    return world.violations


def _options(world: World) -> dict[str, object]:
    if world.subject.library != "echo":
        return {}
    options: dict[str, object] = {"iteration_s": world.rng.choice([0.005, 0.02, 0.05])}
    if world.rng.random() < 0.15:
        options[world.rng.choice(["ignore_sigterm", "fork"])] = True
    return {"agent": options}


def _one(world: World, only: Sequence[str], counts: collections.Counter[str]) -> None:
    """Inject one fault that fits the moment."""
    for _ in range(ATTEMPTS):
        name = world.rng.choice(list(only))
        world.faults.append(name)
        try:
            if FAULTS[name](world):
                counts[name] += 1
                return
        except rlnb.RlnbError as exc:  # a full disk is named; nothing else may be refused
            counts[name] += 1
            if not world.disk:
                world.report("a call is refused", f"{name}: {exc}")
            return
        except OSError:
            text = traceback.format_exc()
            if "/rlnb/" in text.rsplit("File", 1)[-1]:
                world.report("an error is no RlnbError", text)
            return
        world.faults.pop()
