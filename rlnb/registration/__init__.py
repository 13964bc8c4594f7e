"""Descriptions of what plugins add: libraries, roles of their ranks, launchers, asset packs and panels.

A description is plain data, so that a kernel reads it without the package that it describes.
"""
