"""Diagnoses a dump of a cluster: what it holds, what it lacks, and which answers that weakens."""
