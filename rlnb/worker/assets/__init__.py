"""Robot and scene files: which asset root a worker uses, and how it is built or mirrored.

``root`` finds the asset root, ``packs`` builds the asset packs of plugins and takes those that were made ahead of time,
as in a container image, and ``mirror`` copies files from an asset root to a folder.
"""
