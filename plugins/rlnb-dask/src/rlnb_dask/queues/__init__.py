"""The launchers for batch queues: one class and one file for each scheduler.

``registry`` lists the queues and imports nothing from Dask. ``launcher`` has the base class: the settings, and the
dask-jobqueue arguments common to all schedulers. Each scheduler's file adds its own arguments, its walltime format, and
the queries about its jobs. ``launcher`` also finds wrong
settings before a job is submitted, and submits through another machine (``via=``).

To add a queue, write a class in a new file here and add an entry to ``registry``. Nothing in this folder starts a
cluster; ``rlnb_dask.clusters`` does.
"""
