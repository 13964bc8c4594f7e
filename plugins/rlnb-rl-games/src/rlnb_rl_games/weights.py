"""Weights of RL-Games' checkpoints, on any device and with or without ``torch.compile``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

COMPILED = "_orig_mod."
"""Part of the names of weights that ``torch.compile`` adds."""
PARTS = ("model", "assymetric_vf_nets")
"""Parts of a checkpoint with weights: the policy's, and those of the central value function under RL-Games' name."""


def read(checkpoint: str | Path, device: str) -> dict[str, Any]:
    """Return the content of a vetted checkpoint, on a device and with the names of modules that are not compiled.

    RL-Games' own function loads each tensor to the device of its training. A machine without that GPU fails.
    """
    return with_plain_names(torch.load(checkpoint, map_location=device, weights_only=False))


def with_plain_names(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with the names that its weights have in modules that are not compiled."""
    parts = {part: {_plain(name): value for name, value in state[part].items()} for part in PARTS if part in state}
    return {**state, **parts}


def with_names_in(checkpoint: str | Path, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with the names that its weights have in a checkpoint, for a comparison.

    RL-Games itself and rlnb 0.1.0 write the names of compiled modules.
    """
    other = torch.load(checkpoint, map_location="cpu", weights_only=False)
    return {
        **state,
        **{part: with_names(other[part], state[part]) for part in PARTS if part in state and part in other},
    }


def with_names(names: Iterable[str], weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights under those of the names that are the same but for the compiler's part."""
    of_plain = {_plain(name): name for name in names}
    return {of_plain.get(_plain(name), name): value for name, value in weights.items()}


def _plain(name: str) -> str:
    return name.replace(COMPILED, "")
