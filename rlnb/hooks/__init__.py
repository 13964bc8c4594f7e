"""The hooks, the plugins that are installed, and the look-up of what they register.

``hookspecs`` lists the hooks. ``plugin`` describes a plugin and loads it, ``answers`` calls one hook of one plugin and
checks its answer, and ``registry`` holds the plugins that work and those that are left out, and calls a hook of all.
``plugins`` finds a library, a launcher or an asset pack by its name.

Belongs here: the code that calls a function of a plugin's light half, and what happens if the function fails. Does not
belong here: what a plugin describes (``rlnb.contracts``).
"""
