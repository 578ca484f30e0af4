"""A model of every store: the memory store, which others are held against by random steps."""

from .machine import StoreMachine

__all__ = ["StoreMachine"]
