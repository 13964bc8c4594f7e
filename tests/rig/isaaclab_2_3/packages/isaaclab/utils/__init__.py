"""Functions of Isaac Lab."""
