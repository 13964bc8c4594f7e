"""What a cell holds in its hand: the simulator, an env in the debugger, a replay, a tuner.

``simulator`` is ``rlnb.simulator()``. ``debugger`` steps an env one call at a time, ``replay`` repeats the last steps
of a training, and ``tuner`` changes reward terms while an env runs. ``debug_adapter`` speaks to debugpy.

Belongs here: objects that keep something open between cells. Does not belong here: the processes behind them
(``rlnb.simulation``).
"""
