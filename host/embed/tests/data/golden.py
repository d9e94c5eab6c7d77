"""Makes the vectors and tokens that the tests compare with: all-MiniLM-L6-v2 in numpy,
with the tokenizers library.

usage: python3 golden.py MODEL_FOLDER, which has model.safetensors and tokenizer.json.
Reads the texts of texts.json, more.json and tokens.json; writes goldens.json, more.json
and tokens.json anew.
"""

import base64
import json
import math
import struct
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

MODEL, HERE = Path(sys.argv[1]), Path(__file__).parent
TYPES = {"F32": np.float32, "I64": np.int64}


def load(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            part = data[8 + size + begin : 8 + size + end]
            out[name] = np.frombuffer(part, TYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return out


W = load(MODEL / "model.safetensors")
TOKENIZER = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
TOKENIZER.no_padding()
TOKENIZER.enable_truncation(256)
ERF = np.vectorize(math.erf, otypes=[np.float64])


def norm(x, name):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * W[name + ".weight"] + W[name + ".bias"]


def linear(x, name):
    return x @ W[name + ".weight"].T + W[name + ".bias"]


def embed(text):
    ids = TOKENIZER.encode(text).ids
    n, p = len(ids), "embeddings."
    x = W[p + "word_embeddings.weight"][ids] + W[p + "position_embeddings.weight"][:n]
    x = norm(x + W[p + "token_type_embeddings.weight"][0], p + "LayerNorm")
    for layer in range(6):
        p = f"encoder.layer.{layer}."
        parts = (linear(x, f"{p}attention.self.{s}") for s in ("query", "key", "value"))
        q, k, v = (part.reshape(n, 12, 32).transpose(1, 0, 2) for part in parts)
        a = q @ k.transpose(0, 2, 1) / math.sqrt(32)
        a = np.exp(a - a.max(-1, keepdims=True))
        a /= a.sum(-1, keepdims=True)
        c = (a @ v).transpose(1, 0, 2).reshape(n, 384)
        x = norm(linear(c, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
        h = linear(x, p + "intermediate.dense")
        h = h * 0.5 * (1 + ERF(h / np.float32(math.sqrt(2))).astype(np.float32))
        x = norm(linear(h, p + "output.dense") + x, p + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def read(name):
    return json.loads((HERE / name).read_text())


def write(name, value):
    (HERE / name).write_text(json.dumps(value))


def vectors(texts):
    return [base64.b64encode(embed(text).astype("<f4").tobytes()).decode() for text in texts]


HEAD = {"how": "golden.py: no padding, 256 tokens, exact GELU, mean of all tokens, length one"}
write("goldens.json", {**HEAD, "f32le_base64": vectors(read("texts.json"))})
more = read("more.json")["texts"]
write("more.json", {**HEAD, "texts": more, "f32le_base64": vectors(more)})
write("tokens.json", [[text, TOKENIZER.encode(text).ids] for text, _ in read("tokens.json")])
