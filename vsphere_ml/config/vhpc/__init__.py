"""Reads cluster files of VMware's vhpc-toolkit, which has no maintained successor, and makes cluster files of them.

The format is read from vhpc_toolkit/cluster.py of version 1.0.3. Unlike there, nothing of a file is evaluated.
"""
