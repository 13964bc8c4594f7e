"""Benchmarks on an NVIDIA GPU, in parts that need nothing of each other, since GPUs are often borrowed for minutes."""
