"""The functions of an expression, a module for each library."""
