"""What the curves of a training say about how it learns.

``symptoms`` has the signs of bad learning, ``diagnosis`` what a notebook shows of them, and ``rules`` the rules of
alerts.
"""
