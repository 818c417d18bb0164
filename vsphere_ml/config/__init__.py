"""The file a person writes: TOML to ClusterSpec, every mistake at once. Knows no vCenter."""
