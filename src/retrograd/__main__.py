"""`python -m retrograd` is the `retrograd` command."""

from retrograd.cli import main

if __name__ == "__main__":
    main()
