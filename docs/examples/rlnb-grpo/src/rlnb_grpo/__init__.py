"""GRPO on a tiny language model, as an example of a library without a simulator."""
