"""The command ``rlnb``: one module for each group of its verbs.

``app`` holds the command itself and the verbs on one run. ``arguments`` holds the options that several verbs share,
``screen`` prints. ``demo`` executes the quickstart notebook, and ``scaffold`` makes new plugins from ``templates/``.

Belongs here: reading arguments, printing answers. Does not belong here: code that a notebook could need too, since a
command calls the public functions of ``rlnb`` as a notebook does.
"""
