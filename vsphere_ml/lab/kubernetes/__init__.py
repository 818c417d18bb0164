"""A real Kubernetes control plane for the lab, with Kubeflow's MPI operator, and nodes that run pods as processes."""
