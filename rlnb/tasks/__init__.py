"""A task as the kernel knows it, which never imports it, and as it asks the worker about it.

``task`` makes a ``Task`` from a name and values (``rlnb.task``), ``cell`` saves the module of a ``%%task`` cell and
finds the files that it needs, and ``script`` makes a task of a training script. ``card`` is what a task is made of;
``overrides`` checks selectors and config values against it, and ``agent_config`` reads agent values. ``requests`` has
the requests to a simulator with their answers, ``messages`` the lines of JSON that carry them.

Belongs here: nouns that kernel and worker share about tasks. Does not belong here: getting a card or an answer
(``rlnb.simulation``), and making one (``rlnb.worker.requests``).
"""
