"""A real Kubernetes control plane for the lab, with Kubeflow's MPI operator. Without nodes: pods stay pending."""
