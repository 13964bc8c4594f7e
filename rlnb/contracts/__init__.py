"""The contracts that plugins fulfil: ``launchers`` and ``libraries``.

A contract is a protocol, so a plugin needs no base class.
"""
