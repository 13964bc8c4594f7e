"""Dask settings for a worker that only starts an agent and waits; Dask's own work takes CPU time from the ranks."""

QUIET = {
    "distributed.worker.profile.enabled": False,  # it samples every thread 100 times a second
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.disk": False,
}
