"""What the cameras of a task see, before a training and during one.

``preview`` takes frames of a task (``rlnb.preview``), ``inspector`` finds what is wrong with them, ``grid`` and
``browse`` draw them. ``live`` shows the cameras of a training, ``viewer`` the task in 3D (``rlnb.view``), and
``budget`` measures how many cameras a machine can render.

Belongs here: what asks a simulator for pictures and what draws them. Does not belong here: the simulator's half
(``rlnb.worker.cameras`` and ``rlnb.worker.requests``), and pictures of anything else (``rlnb.display``).
"""
