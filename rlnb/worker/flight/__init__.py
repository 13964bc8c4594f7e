"""The flight recorder: the last steps of a training, and the first value in them that is not finite.

``snapshot`` reads the values of a step and the whole state of an env, and restores it. ``recorder`` keeps the last
steps, looks at them, and keeps what a replay needs. An evaluation keeps nothing: its ``guard`` ends it at the first
such value.
"""
