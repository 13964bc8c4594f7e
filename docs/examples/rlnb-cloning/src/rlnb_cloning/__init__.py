"""Behaviour cloning from recorded rollouts."""
