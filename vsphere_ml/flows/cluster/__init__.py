"""From a cluster file to its VMs and back: plan, confirm, apply, report.

One file a command, beside what they share.
"""
