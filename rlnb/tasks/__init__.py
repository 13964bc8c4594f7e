"""Tasks as the kernel describes them, without importing them, and the requests to the worker about them.

``task`` makes a ``Task`` from a name and values (``rlnb.task``), ``cell`` saves the module of a ``%%task`` cell and
finds the files that the module needs, and ``script`` makes a task from a training script. ``card`` describes the parts
of a task; ``overrides`` checks selectors and config values against the card, ``launcher_args`` checks the arguments of
Isaac Lab's launcher, and ``agent_config`` reads agent values.
``requests`` defines the requests to a simulator with their answers, and ``messages`` the lines of JSON that carry them.

Belongs here: types about tasks that kernel and worker share. Does not belong here: getting a card or an answer
(``rlnb.simulation``), and making one (``rlnb.worker.requests``).
"""
