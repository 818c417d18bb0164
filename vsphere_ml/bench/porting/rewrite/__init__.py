"""The edits that port a script to Horovod: exact places of its text, its comments and its layout left alone."""
