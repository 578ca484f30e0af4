"""The store in the memory of one process: the oracle that the others are held against."""

from .store import MemoryStore, open_memory

__all__ = ["MemoryStore", "open_memory"]
