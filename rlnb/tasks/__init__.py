"""A task in the kernel: its name or cell, the version of its source, its card, and its agent configs.

``task`` makes a :class:`rlnb.Task`. ``source`` keeps and verifies versions of a task's module, ``card_cache`` gets task
cards from the simulator and keeps them, and ``agent`` shows an agent config.

Belongs here: what only the kernel does with a task. Does not belong here: what the worker knows too (``rlnb.configs``).
"""
