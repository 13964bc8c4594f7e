"""What a plugin describes, and the protocols that its classes fulfil.

``libraries`` holds both for RL libraries, ``launchers`` the protocols of launchers. ``plugin_types`` describes
launchers, asset packs and panels. A description needs no import of the package that it describes, so that a kernel can
read it. A contract is a protocol, so a plugin needs no base class.

Belongs here: what the author of a plugin writes against. Does not belong here: the code that calls it.
"""
