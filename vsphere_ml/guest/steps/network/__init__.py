"""Steps for RDMA and RoCE."""
