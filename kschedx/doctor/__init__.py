"""What a dump of a cluster holds, what it lacks, and which answers that weakens."""
