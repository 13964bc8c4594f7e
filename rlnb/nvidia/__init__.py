"""NVIDIA's driver on this machine.

``cuda`` asks the driver library and reads the CUDA version of torch. Other processes execute it. ``gpus`` starts such a
process and returns the GPUs.

Belongs here: questions to the driver library. Does not belong here: the choice of a GPU, which launchers, agents and
the worker make.
"""
