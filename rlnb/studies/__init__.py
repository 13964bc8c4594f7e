"""``rlnb.studies``: several trainings that answer one question.

``groups`` compares existing runs (``rlnb.compare``). ``libraries`` trains one task with several RL libraries,
``scaling`` on several numbers of GPUs, and ``sweep`` with many agent configs: ``space`` describes the search space,
``trials`` runs the trials and stores the search, and ``sweep_figures`` draws it. ``verify`` checks that ranks learn as
one, and that a seed gives the same run twice.

Belongs here: code that starts or compares several runs. Does not belong here: a single training (``rlnb.training``).
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
