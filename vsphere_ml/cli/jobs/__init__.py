"""`vsml job`: the user's own programs on the cluster's nodes."""
