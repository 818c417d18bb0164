"""Commands about a cluster file: from `init` to `destroy`. One file a command."""
