"""Commands that enter guests. One file a command."""
