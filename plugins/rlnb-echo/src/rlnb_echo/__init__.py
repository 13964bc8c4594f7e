"""A fake RL library for rlnb that learns nothing and takes a second."""
