"""The Common Expression Language as Kubernetes' device selectors have it: types, functions, costs and faults.

`compile_program` returns a `Program`; `Program.evaluate` counts what it costs and stops where Kubernetes does. No
library for Python counts that, so all of it but the words for wrong syntax and the regular expressions is here:

    parser       text to a syntax tree (syntax), macros replaced
    checker      its types (types), and the overloads of each call
    planner      a function that evaluates it
    costs        what evaluating counts
    values       what it gives: how values compare, and how they are printed
    environment, library   what it may call
"""

from kschedx.cel.program import COST_EXCEEDED, Program, compile_program, refusal
from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, Literal, Select, descendants
from kschedx.cel.values import MapValue, Value

__all__ = [
    "COST_EXCEEDED",
    "Call",
    "Comprehension",
    "Expr",
    "Ident",
    "Literal",
    "MapValue",
    "Program",
    "Select",
    "Value",
    "compile_program",
    "descendants",
    "refusal",
]
