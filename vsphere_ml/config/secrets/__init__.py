"""How secrets come in: file, environment, keyring or prompt.

None is ever printed, and where each came from is known.
"""
