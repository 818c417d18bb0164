"""Steps of any Linux guest: files, packages, services, kernel."""
