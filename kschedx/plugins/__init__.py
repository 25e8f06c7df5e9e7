"""The in-tree plugins: one module each, named as upstream names it, in snake_case."""
