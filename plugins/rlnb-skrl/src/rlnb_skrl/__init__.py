"""skrl (https://skrl.readthedocs.io) for rlnb."""
