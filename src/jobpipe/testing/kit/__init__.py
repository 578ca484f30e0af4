"""What `pipe.testing()` is made of: the real runner on a memory store, driven by a manual clock."""
