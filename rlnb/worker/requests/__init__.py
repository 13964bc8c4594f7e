"""The warm simulator's answers to a kernel, one module for each kind of request.

``serve`` reads requests and dispatches them, and ``warmup`` works between them. ``card`` describes a task, ``preview``,
``budget`` and ``viewer`` (with its ``sidebar``) show it, ``sanity`` finds its mistakes, and ``debug``, ``replay`` and
``tuner`` keep an env open. The kernel's side is in ``rlnb.tasks``, ``rlnb.cameras``, ``rlnb.training`` and
``rlnb.interactive``.
"""
