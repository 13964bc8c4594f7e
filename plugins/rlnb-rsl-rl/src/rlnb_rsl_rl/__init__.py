"""RSL-RL (https://github.com/leggedrobotics/rsl_rl) for rlnb."""
