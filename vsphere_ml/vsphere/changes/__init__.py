"""Carries changes out at a vCenter and follows their tasks, under the cluster's lock."""
