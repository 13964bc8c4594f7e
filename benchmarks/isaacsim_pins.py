"""Compares the packages of an environment with Isaac Sim, as the resolver picks them with and without rlnb.

    python benchmarks/isaacsim_pins.py

uv resolves Isaac Lab with its extra for Isaac Sim, alone and together with every package and extra of rlnb, each time
with the same overrides: those of overrides-isaacsim.txt, and those of Isaac Lab's installation tests, if its wheel has
them. Nothing is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import pins as rig

ISAACLABS_OWN = Path("source", "isaaclab", "test", "install_ci", "uv_pip", "uv-overrides.txt")
"""Overrides of Isaac Lab's installation tests, below the folder of the package."""


def overrides() -> dict[str, Path]:
    """Return the files of overrides, by a name for the row."""
    files = {"overrides-isaacsim.txt": rig.OVERRIDES}
    isaaclab = importlib.util.find_spec("isaaclab")
    if isaaclab is not None and isaaclab.origin is not None:
        files["Isaac Lab's overrides"] = Path(isaaclab.origin).parent / ISAACLABS_OWN
    return {name: file for name, file in files.items() if file.is_file()}


def main() -> None:
    texts, equal = [], True
    for name, file in overrides().items():
        alone, together = rig.resolve([rig.WITH_VISER], file), rig.resolve([rig.ISAACSIM, *rig.everything()], file)
        moves = [
            f"{key} {version} -> {together.get(key)}" for key, version in alone.items() if together.get(key) != version
        ]
        equal = equal and not moves
        texts.append(f"{name}: {', '.join(moves) or f'{len(alone)} equal, {len(together) - len(alone)} added'}")
    record("resolver: pins of Isaac Sim 6.2 with and without rlnb", "; ".join(texts), "the lists are equal", equal)


if __name__ == "__main__":
    main()
