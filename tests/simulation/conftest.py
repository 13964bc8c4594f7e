"""Let the tests of this folder import the rig."""

from __future__ import annotations

import sys
from pathlib import Path

# pytest's importlib mode does not add this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))
