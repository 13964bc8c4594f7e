"""The public names of rlnb.studies, for editors and type checkers. ``rlnb/studies/__init__.py`` reads the list."""

from .libraries import compare_libraries as compare_libraries
from .scaling import scaling_study as scaling_study
from .sweep import get_sweep as get_sweep
from .verify import verify_determinism as verify_determinism
from .verify import verify_sync as verify_sync

__all__: list[str]
