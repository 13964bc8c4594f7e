"""Isaac Lab. ``isaaclab`` is the one module that knows its version and its private APIs.

``env`` makes an env, ``config`` reads and changes its config, ``module`` imports the module of a ``%%task`` cell, and
``terms`` exchanges reward and observation terms in a living env.
"""
