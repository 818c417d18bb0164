"""The embedded lab vCenter: builds, starts and stops it. Knows nothing of what runs against it."""
