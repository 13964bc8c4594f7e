"""The machine that this process is on, as far as Linux knows it.

``cores`` says how many CPU cores this process may use, and why. ``cgroups`` reads the limits of the containers, pods
and jobs around it. ``nvidia`` has the GPUs.

Belongs here: what a process may use. Does not belong here: what a training does with it.
"""
