"""The launchers for batch queues: one class and one file for each scheduler.

``registry`` names the queues and imports nothing of Dask. ``launcher`` has the base class: the settings, and the
arguments that dask-jobqueue takes for every scheduler. Each scheduler's own file says which arguments it adds, how it
writes a walltime, and how its jobs are looked at. ``checks`` finds wrong settings before a job is submitted.

A new queue is a class in a file of its own here, and an entry in ``registry``. Nothing in this folder starts a cluster;
see ``rlnb_dask.clusters`` for that.
"""
