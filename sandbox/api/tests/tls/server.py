"""An index of Python packages over TLS, with one package, which it makes.

Arguments: a folder for the files, the server's certificate, its key. Prints its
port.
"""

import base64
import functools
import hashlib
import http.server
import os
import ssl
import sys
import zipfile

folder, certificate, key = sys.argv[1:]
NAME = "a99demo-1.0-py3-none-any.whl"
place = os.path.join(folder, "simple", "a99demo")
os.makedirs(place)
files = {
    "a99demo/__init__.py": "ANSWER = 6 * 7\n",
    "a99demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: a99demo\nVersion: 1.0\n",
    "a99demo-1.0.dist-info/WHEEL":
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = ""
for name, text in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
    record += f"{name},sha256={digest.decode()},{len(text)}\n"
files["a99demo-1.0.dist-info/RECORD"] = record + "a99demo-1.0.dist-info/RECORD,,\n"
with zipfile.ZipFile(os.path.join(place, NAME), "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
with open(os.path.join(place, "index.html"), "w") as index:
    index.write(f'<!DOCTYPE html><a href="{NAME}">{NAME}</a>\n')

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True,
                                    do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
