"""Access to Isaac Lab. ``isaaclab`` is the only module that depends on its version and its private APIs.

``env`` makes an env, ``config`` reads and changes its config, ``module`` imports the module of a ``%%task`` cell, and
``terms`` swaps rewards, terminations, events and commands in a living env.
"""
