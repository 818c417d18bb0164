"""Is a training script ported to Horovod? Read from its syntax tree; the script is never run."""
