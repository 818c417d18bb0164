"""How jobs of the user's are shown."""
