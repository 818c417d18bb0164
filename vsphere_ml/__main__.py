"""Run the command line as `python -m vsphere_ml`."""

from vsphere_ml.cli.app import main

if __name__ == "__main__":
    main()
