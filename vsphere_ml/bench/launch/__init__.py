"""How ranks are started, followed and ended in guests, whatever the launcher. A launch leaves no process behind."""
