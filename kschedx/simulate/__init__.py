"""What happens next: a queue of pods on a cluster that moves."""
