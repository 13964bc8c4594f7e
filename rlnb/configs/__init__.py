"""What kernel and worker both know of a task: its card, its values by path, its agent values, its cameras.

``card`` is the worker's description of a task, with the checks of a user's values against it. ``tree`` lists and sets
the values of a config, ``agent`` reads agent values in every form in which users give them, and ``cameras`` places the
camera that rlnb adds. ``launcher_args`` are the arguments of Isaac Lab's launcher.

Belongs here: data about a task, with checks that need no simulator. Does not belong here: the file or the cell that a
task comes from (``rlnb.tasks``), and Isaac Lab (``rlnb.worker.isaac``).
"""
