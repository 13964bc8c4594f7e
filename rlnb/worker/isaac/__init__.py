"""Access to Isaac Lab. ``release`` checks its version, and looks up the private APIs that rlnb uses.

``isaaclab`` starts it and reads its registry, ``modules`` imports what a task's registration or cell names, ``sources``
watches the user's own files, and ``agent_configs`` finds agent configs. ``env`` resolves a config and makes the env,
on a ``device``, with a ``renderer`` and ``spaces``. ``kit`` starts Isaac Sim, and ``ovphysx`` prepares PhysX alone.
``success`` and ``task_log`` read what a task logs, ``solver`` what a physics solver carries from step to step, and
``interface`` what a policy reads and returns. ``controls`` pushes robots and holds commands, and ``terms`` swaps
rewards, terminations, events and commands, in a living env. ``term_errors`` names a term whose value a manager cannot
use.
"""
