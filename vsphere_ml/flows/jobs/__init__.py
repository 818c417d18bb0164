"""Jobs of the user's on the nodes' guests: started, found again, followed, stopped, fetched."""
