"""Clusters for rlnb, through Dask (https://jobqueue.dask.org)."""
