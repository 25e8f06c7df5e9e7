"""What an API server does with a manifest before it stores it."""
