"""Execute the notebooks for the gallery, with parameters small enough for a laptop.

python docs/execute.py [outputs/gallery] [01_quickstart ...]
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import papermill

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PARAMETERS: dict[str, dict[str, object]] = {
    "01_quickstart": {"num_envs": 256, "max_iterations": 100, "episodes": 64},
    "02_define_a_task": {"num_envs": 128, "max_iterations": 30},
    "03_cameras": {},
    "04_libraries": {"num_envs": 128, "frames": 100_000, "seeds": 2, "episodes": 32},
    "05_clusters": {},
    "06_sweeps_and_reports": {"num_envs": 64, "max_iterations": 10, "n_trials": 3, "episodes": 16},
    "train": {"num_envs": 64, "max_iterations": 10, "episodes": 16},
}


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/gallery").absolute()
    out.mkdir(parents=True, exist_ok=True)
    os.environ["RLNB_ROOT"] = str(out / "rlnb-runs")
    for name in sys.argv[2:] or PARAMETERS:
        if name == "05_clusters" and shutil.which("sbatch") is None:
            print("05_clusters needs Slurm: make slurm-up, then export the SLURM_CONF that it prints")
            continue
        source, target = NOTEBOOKS / f"{name}.ipynb", out / f"{name}.ipynb"
        papermill.execute_notebook(str(source), str(target), PARAMETERS[name], cwd=str(out), kernel_name="python3")
        print(target)


if __name__ == "__main__":
    main()
