"""Arrays: many runs as one job of a queue, with one host process and without Dask.

``launcher`` is the base class of the queues that have arrays. It writes the request of an array into a folder
(``folder``) with the script of an element (``script``), and starts the host, ``python -m rlnb_dask.arrays``. The host
(``host``) submits the script as an array and watches it until the last element has ended (``rounds``). ``slurm`` and
``sge`` have the commands of each queue, and ``queue`` what they share. On a node, ``element`` starts the run's agents.
"""
