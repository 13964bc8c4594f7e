"""The plugins that are installed, and every call of their hooks.

``plugin`` describes a plugin and loads it, ``answers`` calls one hook of one plugin and checks its answer, ``registry``
holds the plugins that work and those that are left out, and ``calls`` calls a hook of all plugins.

Belongs here: the code that calls a function of a plugin's light half, and what happens if the function fails. Does not
belong here: the hooks themselves (``rlnb.hookspecs``), and the look-up of a library or a launcher by its name
(``rlnb.plugins``).
"""
