"""What a training run will spend on its gradients.

Computed from sizes alone, and what others have published to compare with.
"""
