"""Facts and state as compiled code takes them: each as one object with the same fields, by reference.

A named tuple goes by value, and each of its arrays would be half a dozen arguments of every kernel: compilation would
take minutes. Without compilation the named tuples are passed themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.engines.fast.compiled import HAS_NUMBA, compiled, sources
from planner.engines.fast.state import Facts, State

if HAS_NUMBA:
    from numba.core import types
    from numba.experimental import structref

    Struct: Any = vars(types)["StructRef"]

    @structref.register
    class FactsType(Struct):
        """Type of the facts in compiled code."""

    @structref.register
    class StateType(Struct):
        """Type of the state in compiled code."""

    class FactsReference(structref.StructRefProxy):
        """What Python holds of it."""

    class StateReference(structref.StructRefProxy):
        """What Python holds of it."""

    structref.define_proxy(FactsReference, FactsType, Facts._fields)
    structref.define_proxy(StateReference, StateType, State._fields)

    def _entry() -> Callable[[Facts, State], tuple[Any, Any, int]]:
        stamp = sources("compiled", "state", "by_reference")

        @compiled
        def refer(f: Facts, s: State) -> tuple[Any, Any, int]:
            return FactsReference(*f), StateReference(*s), stamp

        return refer

    _refer = _entry()

    def referred(f: Facts, s: State) -> tuple[Any, Any]:
        """References to facts and state; they share the arrays."""
        return _refer(f, s)[:2]

else:

    def referred(f: Facts, s: State) -> tuple[Any, Any]:
        """Facts and state."""
        return f, s
