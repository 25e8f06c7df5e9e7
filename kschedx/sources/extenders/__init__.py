"""Requests to scheduler extenders, and recordings of what they answered."""
