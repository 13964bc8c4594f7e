"""The names that the backend of a library imports from rlnb."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_names_for_backends_does_not_load_torch() -> None:
    code = (
        "import sys\n"
        "from rlnb.backend import Backend, TrainContext, vet_checkpoint, write_whole\n"
        "print([name for name in ('torch', 'isaaclab', 'warp', 'numpy') if name in sys.modules])\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    code = "import rlnb.backend\ntry: rlnb.backend.vet_checkpoints\nexcept AttributeError as exc: print(exc)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "vet_checkpoints" in process.stdout
