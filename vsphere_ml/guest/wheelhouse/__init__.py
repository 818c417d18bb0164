"""A wheelhouse with Horovod, built in a guest: what that wants of the guest, what is run there, and what came of it."""
