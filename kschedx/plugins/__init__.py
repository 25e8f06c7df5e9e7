"""The in-tree plugins, a module each, under upstream's name in snake_case."""
