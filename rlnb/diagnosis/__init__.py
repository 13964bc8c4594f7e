"""What the curves of a training say about how it learns.

``curves`` has the statistics of one curve, ``symptoms`` the rules, and ``diagnosis`` what a notebook shows of them.
"""
