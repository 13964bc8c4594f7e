"""Texts that start the pods or nodes of a run: job scripts, manifests and commands of services.

``render`` is what :meth:`rlnb.Run.job_script` calls. ``job`` checks its arguments and derives what all forms share,
such as the size of a pod and its environment. Each form is a module with one function ``render(request)``: ``shell``,
``sbatch``, ``pytorchjob``, ``trainjob``, ``osmo``, ``skypilot`` and ``dlc``. ``kubernetes`` builds the parts of a pod.

Belongs here: pure functions from a manifest to text. Does not belong here: code that runs in a pod (``rlnb.pods``).
"""
