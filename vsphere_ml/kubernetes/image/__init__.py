"""The container image of an MPIJob: what it is built of, and whether a file tree has what the operator expects.

The contract is mpi-operator's at v0.8.2: build/base (Dockerfile, sshd_config, entrypoint.sh) and what its controller
mounts and runs (pkg/controller/mpi_job_controller.go).
"""
