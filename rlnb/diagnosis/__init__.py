"""What the curves of a training say about how it learns.

``curves`` has the statistics of one curve, ``symptoms`` the signs of bad learning, ``diagnosis`` what a notebook shows
of them, and ``rules`` the rules of alerts.
"""
