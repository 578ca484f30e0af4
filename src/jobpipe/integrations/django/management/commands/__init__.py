"""The commands of the app, one module for each."""
