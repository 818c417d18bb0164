"""Commands that read records and start nothing. One file a command."""
