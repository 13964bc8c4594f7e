"""Cluster launchers for rlnb, built on Dask (https://jobqueue.dask.org)."""
