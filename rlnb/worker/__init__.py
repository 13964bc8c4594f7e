"""The worker's half: the only room that imports torch and isaaclab."""
