"""Who is who: the key pair that signs in, and the host keys that guests and hosts are known by."""
