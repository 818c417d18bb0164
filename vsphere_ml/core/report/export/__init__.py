"""What other tools read: pure text, made from values, with names of other people escaped."""
