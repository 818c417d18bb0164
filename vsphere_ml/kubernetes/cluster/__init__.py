"""What a Kubernetes cluster is asked before anything trains on it: its nodes, its operators, a pod on each node."""
