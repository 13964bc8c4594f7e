"""The plugins that change the env config, now and in the training of a checkpoint."""

from __future__ import annotations

import logging

from rlnb.hooks.calls import versions_of
from rlnb.records.record import RunRecord
from rlnb.worker.jobs.context import OpenJob

logger = logging.getLogger(__name__)
HOOK = "rlnb_configure_env"
"""The hook by which a plugin changes the env config."""


def differences(job: OpenJob) -> tuple[str, ...]:
    """Return a sentence for each plugin by which the env of a job may differ from that of its training.

    Args:
        job: Evaluation or export of a run.
    """
    started = RunRecord(job.run.path, job.manifest).last_started
    if started is None or started.plugins is None:  # an older rlnb trained, and recorded no plugins
        return ()
    trained, here = started.plugins, versions_of(HOOK)
    texts = []
    for name in sorted({*trained, *here}):
        if name not in here:
            state = "does not work here, or is not installed. The env may differ from that of the training"
            texts.append(f"The plugin {name!r} {trained[name]} was part of the training, and {state}.")
        elif name not in trained:
            texts.append(f"The plugin {name!r} {here[name]} may change the env here, and was not part of the training.")
        elif trained[name] != here[name]:
            versions = f"{trained[name]} in the training, and {here[name]} here"
            texts.append(f"The plugin {name!r}, which may change the env, had version {versions}.")
    for text in texts:
        logger.warning("%s", text)
    return tuple(texts)
