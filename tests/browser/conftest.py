"""Tests of this folder share one driver, which pytest's importlib mode would not find."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
