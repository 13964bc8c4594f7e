"""Pictures of a task: still, live, in 3D; their faults and their cost.

``preview`` takes frames of a task (``rlnb.preview``) and browses them, ``frames`` holds them and finds faults in them,
and ``grid`` draws them. ``live`` shows the cameras of a training, ``viewer`` shows the task in 3D (``rlnb.view``), and
``budget`` measures how many cameras a machine can render. ``scene`` is a task with a policy that acts in it.

Belongs here: requesting and drawing camera pictures. Does not belong here: the simulator's side
(``rlnb.worker.cameras`` and ``rlnb.worker.requests``), and pictures of other things (``rlnb.display``).
"""
