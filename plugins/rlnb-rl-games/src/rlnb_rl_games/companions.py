"""The files that a checkpoint has beside it."""

BUFFER = ".replay_buffer.npz"
"""End of the name of the file that holds its replay buffer."""
