"""Weights & Biases (https://wandb.ai) for rlnb."""
