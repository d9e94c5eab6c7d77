"""Compiles Python modules for the guest.

Arguments: the root of the guest's files, and a folder for the results. The
modules' paths below the root come by line on standard input. Results carry the
hash of their source and are never checked against it: the times of files in
the image mean nothing.
"""

import os
import sys
import _imp
from importlib import _bootstrap_external as external

root, results = sys.argv[1:]
for line in sys.stdin:
    path = line.rstrip("\n")
    with open(os.path.join(root, path), "rb") as file:
        source = file.read()
    code = compile(source, "/" + path, "exec", dont_inherit=True, optimize=0)
    digest = _imp.source_hash(external._RAW_MAGIC_NUMBER, source)
    result = os.path.join(results, path + "c")
    os.makedirs(os.path.dirname(result), exist_ok=True)
    with open(result, "wb") as file:
        file.write(external._code_to_hash_pyc(code, digest, False))
