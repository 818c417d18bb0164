"""Results as text and as JSON. Prints nothing itself but through the console it is given."""
