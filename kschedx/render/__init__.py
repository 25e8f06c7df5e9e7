"""Renders answers as screens, pages, and documents."""
