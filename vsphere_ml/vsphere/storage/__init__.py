"""Where a VM comes from and what keeps it: content libraries over REST, and storage policies over PBM."""
