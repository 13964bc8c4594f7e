"""A stand-in for Isaac Lab 2.3, which needs Isaac Sim 5.1 and Python 3.11. It needs only the standard library."""
