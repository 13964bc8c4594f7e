"""A stand-in for RSL-RL 3.1, the version that Isaac Lab 2.3 requires."""
