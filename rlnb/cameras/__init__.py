"""Pictures from a task's cameras, before and during a training.

``preview`` takes frames of a task (``rlnb.preview``), ``inspector`` finds faults in them, and ``grid`` and
``browse`` draw them. ``live`` shows the cameras of a training, ``viewer`` shows the task in 3D (``rlnb.view``), and
``budget`` measures how many cameras a machine can render.

Belongs here: requesting and drawing camera pictures. Does not belong here: the simulator's side
(``rlnb.worker.cameras`` and ``rlnb.worker.requests``), and pictures of other things (``rlnb.display``).
"""
