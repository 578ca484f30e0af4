"""`python -m jobpipe` is the command `jobpipe`."""


def main() -> None:
    """Run the command line; without the extra `service`, say what to install."""
    try:
        from .cli.main import main
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("jobpipe"):
            raise
        raise SystemExit(
            f"error: jobpipe needs {error.name}: pip install 'rate-envelope-queue[service]'"
        ) from None
    main()


if __name__ == "__main__":
    main()
