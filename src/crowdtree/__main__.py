"""`python -m crowdtree` is the command `crowdtree`."""

from crowdtree.cli.app import main

if __name__ == "__main__":
    main()
