"""What a site really answers, on file: exchanges with vCenter, and commands of hosts and guests, all redacted.

Its own package since it is the one place that decides what may leave a site: the lists of what passes are here, and
everything else is replaced. It knows nothing of pyVmomi, of SSH or of the lab that gives a record's answers again.
"""
