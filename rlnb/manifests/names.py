"""Names that the services accept for a job."""

from __future__ import annotations

import re

MOST = 46
"""Most characters of a name. Kubernetes allows 63, of which operators need up to 17, as in ``-node-0-999-x7f2k``."""
_SUFFIX = 5
"""Characters at the end of a run's id that tell runs of the same second apart."""


def job_name(run_id: str) -> str:
    """Return a name for the job of a run: a DNS label of RFC 1035, which begins with a letter.

    Kubeflow's PyTorchJob and TrainJob require such a label, and OSMO accepts it.
    """
    name = "rlnb-" + re.sub("[^a-z0-9]+", "-", run_id.lower()).strip("-")
    return name if len(name) <= MOST else name[: MOST - _SUFFIX].rstrip("-") + name[-_SUFFIX:]
