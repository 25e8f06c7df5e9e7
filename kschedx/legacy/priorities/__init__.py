"""Priorities: how much a node that passed is worth, from 0 to 10."""
