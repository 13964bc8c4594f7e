"""Access to Isaac Lab. ``release`` checks its version, and gets its private parts or names the missing one.

``isaaclab`` starts it and reads its registry, ``kit`` starts Isaac Sim.
``env`` makes an env, ``config`` reads and changes its config, ``module`` imports the module of a ``%%task`` cell, and
``terms`` swaps rewards, terminations, events and commands in a living env.
"""
