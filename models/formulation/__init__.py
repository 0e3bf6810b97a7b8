"""The joint formulation in Pyomo, one file a family; `build.py` reads as its table of contents."""

from models.formulation.build import build_model

__all__ = ["build_model"]
