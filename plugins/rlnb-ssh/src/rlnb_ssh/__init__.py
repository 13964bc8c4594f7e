"""Trainings of rlnb on machines that are reached by OpenSSH."""
