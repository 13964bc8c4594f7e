"""The command ``rlnb``: one module for each group of subcommands.

``app`` has the command itself and the subcommands that no other module defines. ``arguments`` has the options that
several subcommands share. ``screen`` prints, ``demo`` executes the quickstart notebook, and ``plugins`` makes new
plugins from ``templates/``. ``containers`` writes the files of ``recipes/``.

Belongs here: parsing arguments and printing results. Does not belong here: code that a notebook could also need. A
subcommand calls the public functions of ``rlnb``, as a notebook does.
"""
