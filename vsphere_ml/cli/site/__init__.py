"""Commands about the site and its hosts, whatever the cluster file says. One file a command."""
