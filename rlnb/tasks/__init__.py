"""What a task is to the kernel, which never imports it.

``task`` makes a ``Task`` from a name and values (``rlnb.task``), ``cell`` saves the module of a ``%%task`` cell and
finds the files that it needs. ``overrides`` checks selectors and config values against a task card, ``agent_config``
reads agent values, and ``script`` makes a task of a training script.

Belongs here: names, files and values of tasks. Does not belong here: the task card, which the simulator answers
(``rlnb.simulation.card``).
"""
