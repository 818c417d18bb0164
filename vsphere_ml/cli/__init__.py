"""Arguments in, view out; the only home of typer and rich."""
