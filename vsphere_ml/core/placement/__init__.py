"""Who goes where.

It decides before anything is written, so that a cluster that does not fit costs no VM; names are resolved first,
existing nodes keep their hosts, then the search places the rest.
"""
