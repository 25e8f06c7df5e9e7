"""What an API server does to a manifest before it stores it."""
