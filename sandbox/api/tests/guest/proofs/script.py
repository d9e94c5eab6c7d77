"""What this prints is the same on every machine with a Python of 3.9 or later.

No function of libm that is not exactly rounded is used (only sqrt and fmod
are), no version, path, time or order of a set.
"""

import decimal, fractions, functools, hashlib, hmac, itertools, json, math, queue, re, sqlite3, ssl
import random, struct, subprocess, sys, threading, zlib


def show(name, *values):
    print(name, *values)


class Numbers:
    """The generator of the test that runs this."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return self.state >> 32


numbers = Numbers(7)


def double():
    bits = numbers.next() << 32 | numbers.next()
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


# Floating point: text both ways, every format, operations that round.
total = hashlib.sha256()
for _ in range(1000):
    a, b = double(), double()
    if math.isnan(a) or math.isnan(b):
        continue
    texts = [repr(a), "%.17g" % a, "%.3e" % b, "%g" % a, a.hex(), format(b, ".12g"), str(a + b)]
    texts += [repr(a - b), repr(a * b), repr(a / b) if b else "-"]
    texts += [repr(math.sqrt(abs(a))), repr(math.fmod(a, b)) if b and math.isfinite(a) else "-"]
    assert float(repr(a)) == a and float.fromhex(a.hex()) == a
    texts.append(struct.pack("<f", a).hex() if abs(a) < 3e38 else "-")
    total.update(" ".join(texts).encode())
show("floats", total.hexdigest())
for value in (0.1, 1 / 3, 1e22, 1e23, 5e-324, 1.7976931348623157e308, -0.0, 2.5, 1e16, 123456789.125):
    show("float", repr(value), f"{value:.0f}", f"{value:e}", f"{value:.3f}", f"{value:,.2f}", round(value, 1))
show("sums", functools.reduce(float.__add__, [0.1] * 10), math.fsum([0.1] * 10), math.hypot(3, 4), 7.0 // 2, -7.5 % 2)
show("ints", int(1e300), 3**200, (1 << 521) - 1, pow(3, 1000, 10**40), math.isqrt(10**61), float(10**25))
show("rounding", [round(n / 2) for n in range(-5, 6)], [int(n / 2) for n in range(-5, 6)])

# JSON.
value = {"b": [1, 2.5, -0.0, 1e100, None, True], "a": {"ä": "\u2028\ud83d\ude00\"\\\n"}}
text = json.dumps(value, sort_keys=True)
show("json", text, json.dumps(json.loads(text), sort_keys=True, indent=1, ensure_ascii=False))
for bad in ("{", "[1,]", '"\x01"', "nul", "1e"):
    try:
        json.loads(bad)
        show("json took", bad)
    except json.JSONDecodeError:
        show("json refuses", bad)

# Hashes.
data = bytes(numbers.next() >> 24 for _ in range(100_000))
for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
    show(name, hashlib.new(name, data).hexdigest())
show("shake", hashlib.shake_128(data).hexdigest(20))
show("hmac", hmac.new(b"key", data, "sha256").hexdigest())
show("pbkdf2", hashlib.pbkdf2_hmac("sha256", b"pass", b"salt", 1000).hex())
show("scrypt", hashlib.scrypt(b"pass", salt=b"salt", n=1024, r=8, p=1).hex())
show("zlib", zlib.crc32(data), zlib.adler32(data), zlib.decompress(zlib.compress(data, 9)) == data)

# Decimal and fractions.
decimal.getcontext().prec = 50
one = decimal.Decimal(1)
show("decimal", one / 7, decimal.Decimal(2).sqrt(), one.exp(), decimal.Decimal("1e-30").ln())
show("decimal", decimal.Decimal("2.675").quantize(decimal.Decimal("0.01")), decimal.Decimal(0.1))
show("fraction", fractions.Fraction(355, 113) ** 5, fractions.Fraction(0.1).limit_denominator(100))

# SQLite.
base = sqlite3.connect(":memory:")
base.execute("create table t(i integer primary key, f real, s text, b blob)")
rows = [(n, n / 7, f"text {n % 13}", bytes([n % 256] * 3)) for n in range(2000)]
base.executemany("insert into t values(?, ?, ?, ?)", rows)
show("sqlite", base.execute("select count(*), sum(f), min(s), max(hex(b)) from t").fetchall())
for row in base.execute("select s, count(*) n, round(avg(f), 9), total(i) from t group by s order by n desc, s"):
    show("sqlite", row)
show("sqlite", base.execute("select json_extract('{\"a\":[1,2.50]}', '$.a[1]'), printf('%.15g', 0.1)").fetchone())
query = "with recursive f(a, b) as (values(0, 1) union all select b, a + b from f limit 50) select max(a) from f"
show("sqlite", base.execute(query).fetchone())
with base:
    base.execute("update t set s = upper(s) where i % 3 = 0")
show("sqlite", base.execute("select s from t order by s desc, i limit 3").fetchall())

# TLS: a handshake begins, and a server's certificate is asked for.
context = ssl.create_default_context()
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname="example.org")
try:
    tls.do_handshake()
except ssl.SSLWantReadError:
    hello = outgoing.read()
    show("tls", hello[0], hello[5], b"example.org" in hello, context.verify_mode == ssl.CERT_REQUIRED)
incoming.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
try:
    tls.do_handshake()
except ssl.SSLError as error:
    show("tls", "refused", type(error).__name__)
show("ssl", len(ssl.RAND_bytes(33)), ssl.HAS_TLSv1_3)

# Threads.
lock, total, work, done = threading.Lock(), 0, queue.Queue(), []


def worker():
    global total
    while (item := work.get()) is not None:
        with lock:
            total += item
            done.append(item)


threads = [threading.Thread(target=worker) for _ in range(8)]
for thread in threads:
    thread.start()
for item in range(2000):
    work.put(item)
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()
show("threads", total, sorted(done) == list(range(2000)))
event = threading.Event()
threading.Timer(0.01, event.set).start()
show("timer", event.wait(60), threading.active_count() >= 1)

# Processes.
run = subprocess.run(["sh", "-c", "cat; echo err >&2; exit 3"], input=data, capture_output=True)
show("process", run.stdout == data, run.stderr, run.returncode)
show("process", subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
pipe = subprocess.Popen(["sort", "-n"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
show("process", pipe.communicate(b"10\n9\n-1\n")[0], pipe.returncode)
child = subprocess.run([sys.executable, "-c", "import sys; sys.exit(sum(map(int, sys.argv[1:])))", "40", "2"])
show("process", child.returncode)
try:
    subprocess.run(["/no/such/program"])
except FileNotFoundError as error:
    show("process", error.errno, error.strerror)
try:
    subprocess.run(["sleep", "100"], timeout=0.05)
except subprocess.TimeoutExpired:
    show("process", "timed out")

# Text, and what is random by a seed.
words = re.findall(r"\b\w+(?=ing\b)", "singing ringing bring a king\u0151ing")
show("re", words, re.sub(r"(\d+)", lambda m: str(int(m[1]) * 2), "a1b22c333"))
show("text", "Stra\u00dfe".casefold(), "\u01c4".lower(), "abc".encode("utf-16-le").hex(), f"{255:#010x}|{'x':^9}|")
generator = random.Random(42)
show("random", generator.random(), generator.getrandbits(100), generator.sample(range(1000), 5))
show("order", sorted(itertools.permutations("bca"))[:3], sorted(["b", "A", "a", "B"], key=str.lower))
