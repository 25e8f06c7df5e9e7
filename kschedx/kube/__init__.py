"""The Kubernetes vocabulary that scheduling reads: typed slim records, their decoding, defaulting and arithmetic."""
