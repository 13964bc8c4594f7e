"""Dask as one that starts agents and waits: what it does besides takes cores from the ranks."""

QUIET = {
    "distributed.worker.profile.enabled": False,  # it looks at every thread a hundred times a second
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.disk": False,
}
