"""The tasks."""
