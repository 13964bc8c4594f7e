"""Access to Isaac Lab. ``release`` checks its version, and looks up the private APIs that rlnb uses.

``isaaclab`` starts it and reads its registry, ``agents`` finds agent configs, ``kit`` starts Isaac Sim, and ``ovphysx``
prepares PhysX without Isaac Sim. ``success`` and ``means`` read the success of episodes.
``solver`` reads what a physics solver carries from step to step.
``env`` makes an env, ``env_config`` resolves its config for a training or for play, ``module`` imports the module of a
``%%task`` cell, and ``terms`` swaps rewards, terminations, events and commands in a living env.
"""
