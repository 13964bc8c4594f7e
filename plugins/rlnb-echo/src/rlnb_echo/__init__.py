"""A library for rlnb that learns nothing, in a second."""
