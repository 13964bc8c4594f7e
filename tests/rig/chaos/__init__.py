"""Chaos: short trainings that are hit at random moments. Nothing may be stuck, lost, trained twice or left over.

    make chaos CHAOS="episodes --seeds 1:100"    # each episode is a function of its seed, apart from its timing
    make chaos CHAOS="episodes --slurm"          # on a Slurm that the suite starts; also --isaaclab, and --disk
    make chaos CHAOS="points"                    # a kernel is killed before each of its changes, for every verb
    make chaos CHAOS="resumes --tries 200"       # two to five processes of two hosts resume one run at once

``world`` has one episode's runs and the rules that must hold, ``kernels`` the other processes that act on the runs.
``faults`` are those of processes, ``damage`` those of files and disks, and ``cluster`` those of Slurm. Minutes pass by
setting heartbeats of ended processes back, not by waiting. Needs ``tests/rig`` on the path, and root for a small disk
of its own and for a second host (``unshare --uts``).
"""
