"""The rules of the queue, written once: no clock, no lock, no I/O, no user code.

Methods take `now` and say what to do; the two drivers own time, locks and the calls of user code.
"""
