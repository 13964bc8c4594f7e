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
            plugin = f"The plugin {name!r} {trained[name]}".rstrip()
            state = "It is not installed here, or does not work, so the env may differ."
            texts.append(f"{plugin} could change the env of the training. {state}")
        elif name not in trained:
            plugin = f"The plugin {name!r} {here[name]}".rstrip()
            texts.append(f"{plugin} may change the env here, and was not part of the training.")
        elif trained[name] != here[name]:
            versions = f"{trained[name] or 'unknown'} in the training, and {here[name] or 'unknown'} here"
            texts.append(f"The plugin {name!r}, which may change the env, had version {versions}.")
    for text in texts:
        logger.warning("%s", text)
    return tuple(texts)
