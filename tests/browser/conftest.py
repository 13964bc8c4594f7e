"""Puts this folder on ``sys.path``, so that its tests can import ``lab`` and ``gateway`` in pytest's importlib mode."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
