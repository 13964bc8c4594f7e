"""Functions for tasks."""
