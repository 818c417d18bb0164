"""How a vCenter is reached and trusted.

TLS, SOAP, sign-in, and bounds on what a server may send. Below everything else here, so that no call can wait for
ever.
"""
