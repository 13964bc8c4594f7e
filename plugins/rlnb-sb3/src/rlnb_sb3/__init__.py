"""Stable-Baselines3 (https://github.com/DLR-RM/stable-baselines3) for rlnb."""
