"""What this machine has: cores, GPUs, and the packages and programs that are installed.

``cores`` says how many CPU cores this process may use, and why, and ``threads`` chooses the threads of a job's
processes. ``gpus`` lists the GPUs as NVIDIA's driver counts them; other processes execute ``cuda`` for it. ``nvml``
reads their use. ``packages`` finds packages and programs, and the line that installs what is missing.

Belongs here: facts about the machine. Does not belong here: the choice of a GPU, which launchers, agents and the worker
make, and the memory that a training needs.
"""
