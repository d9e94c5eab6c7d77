"""Gives a virtual environment pip.

Unlike CPython's module of this name it unpacks no wheel. pip lies compiled on the
image's disk; an environment gets a path to it and the commands, which takes a
guest a tenth of a second instead of a minute and none of its disk. A pip that is
installed into the environment is found before it.
"""

import os
import sys
import sysconfig

__all__ = ["version", "bootstrap"]

_PACKAGES = "/usr/lib/python3/dist-packages"

_COMMAND = """#!{python}
import sys
from pip._internal.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""


def version():
    """The version of pip."""
    for name in os.listdir(_PACKAGES):
        if name.startswith("pip-") and name.endswith(".dist-info"):
            return name[len("pip-"):-len(".dist-info")]
    raise RuntimeError("pip is not on the image's disk")


def bootstrap(*, root=None, upgrade=False, user=False, altinstall=False,
              default_pip=False, verbosity=0):
    """Makes pip known to the environment that runs this."""
    if root is not None or user:
        raise ValueError("only a virtual environment can be given pip")
    if sys.prefix == sys.base_prefix:
        print("pip is there already", file=sys.stderr)
        return
    packages = sysconfig.get_path("purelib")
    os.makedirs(packages, exist_ok=True)
    with open(os.path.join(packages, "image-pip.pth"), "w") as file:
        file.write(_PACKAGES + "\n")
    release = "{}.{}".format(*sys.version_info[:2])
    names = ["pip" + release]
    if not altinstall:
        names.append("pip{}".format(sys.version_info[0]))
    if default_pip:
        names.append("pip")
    scripts = sysconfig.get_path("scripts")
    for name in names:
        place = os.path.join(scripts, name)
        with open(place, "w") as file:
            file.write(_COMMAND.format(python=sys.executable))
        os.chmod(place, 0o755)


def _main(argv=None):
    import argparse
    parser = argparse.ArgumentParser(prog="python -m ensurepip")
    parser.add_argument("--version", action="version", version="pip " + version())
    parser.add_argument("-v", "--verbose", action="count", default=0)
    parser.add_argument("-U", "--upgrade", action="store_true")
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--root", default=None)
    parser.add_argument("--altinstall", action="store_true")
    parser.add_argument("--default-pip", action="store_true")
    args = parser.parse_args(argv)
    bootstrap(root=args.root, upgrade=args.upgrade, user=args.user,
              altinstall=args.altinstall, default_pip=args.default_pip,
              verbosity=args.verbose)
    return 0
