"""The machine that this process is on, as far as Linux knows it.

``cores`` says how many CPU cores this process may use, and why. ``cgroups`` reads the limits of the containers, pods
and jobs around it. ``threads`` chooses the threads of a job's processes, and ``schedstat`` reads how long they waited.

Belongs here: the CPU. Does not belong here: GPUs, which ``rlnb.nvidia`` has, and the memory that a training needs.
"""
