"""``python -m rlnb.pods RUN_DIR``: one pod of a run whose nodes are started by a cluster (``rlnb.injected``).

``member`` reads the pod's rank and the address of the first pod from the environment, and ``pod`` runs the node agent
of the run's newest training. If a pod was killed and the cluster starts it again, all pods go on in a further one.

Belongs here: code that runs in a pod, around the node agent (``rlnb.node``). Does not belong here: the manifests that
start pods (``rlnb.manifests``), and the launcher that creates their run (``rlnb.launch.injected``).
"""
