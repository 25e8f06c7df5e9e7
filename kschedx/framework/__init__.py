"""The scheduling framework: extension points, statuses, the runner and its configuration."""
