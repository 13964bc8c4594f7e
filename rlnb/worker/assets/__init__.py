"""Robot and scene files: which asset root a worker uses, and how it is built or mirrored.

``root`` finds the asset root, ``packs`` builds the asset packs of plugins, and ``mirror`` downloads files of a cloud
root.
"""
