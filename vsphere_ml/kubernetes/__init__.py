"""Jobs on Kubernetes, judged before they are submitted.

An API server takes many a broken MPIJob and prunes what it does not know; the MPI operator then refuses it with an
Event alone, or runs all its ranks in one pod and reports success. So what the schema, the controller and MPI say is
held against the manifest here, without a cluster.
"""
