"""Pictures of a task's cameras, before a training and during one.

``preview`` takes frames of a task (``rlnb.preview``), ``inspector`` finds faults in them, ``grid`` and
``browse`` draw them. ``live`` shows the cameras of a training, ``viewer`` the task in 3D (``rlnb.view``), and
``budget`` measures how many cameras a machine can render.

Belongs here: requests for pictures, and drawing them. Does not belong here: the simulator's half
(``rlnb.worker.cameras`` and ``rlnb.worker.requests``), and pictures of anything else (``rlnb.display``).
"""
