"""The flight recorder: the last steps of a training, and the first value in them that is not finite.

``parts`` reads the values of a step from an env, ``recorder`` keeps them and looks at them.
"""
