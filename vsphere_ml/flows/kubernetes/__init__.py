"""What is done on a Kubernetes cluster: benchmarks as MPIJobs, and what its nodes offer."""
