"""Other people's tools that make the same eight VMs as one `vsml provision`."""
