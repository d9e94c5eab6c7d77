# Training workload: typical work, a few hundred million instructions in all. The code
# that it needs most is compiled when the image is built. What is missing here is not wrong,
# only slower. Every line must work.
set -e
cd /tmp

# The shell itself.
i=0; while [ $i -lt 6000 ]; do i=$((i+1)); done
s=
for i in a b c d e f g h; do
    case $i in [a-d]) s=$s$i;; *) s=${s#?};; esac
done
base() { local x=$1; echo "${x%.*}"; }
for i in /etc/*; do base "$i"; done >r
x=$(echo $((6*7)) | cat); test "$x" = 42

# The other shell.
bash <<'END'
i=0; while [ $i -lt 1500 ]; do i=$((i+1)); done
for ((j=0; j<500; j++)); do x[j%9]=$j; done
s=
for i in a b c d e f g h; do
    case $i in [a-d]) s+=$i;; *) s=${s#?};; esac
done
base() { local x=$1; echo "${x%.*}"; }
for i in /etc/*; do base "$i"; [[ $i == *pass* ]] && echo "${i//s/t}"; done >r
while read -r line; do printf '%s %d\n' "$line" ${#line}; done <r >/dev/null
x=$(echo $((6*7)) | cat); test "$x" = 42
for i in 1 2 3 4 5 6; do /bin/echo $i; done >>r
END

# Short commands.
for i in $(seq 60); do
    /bin/echo $i >>r
done
mkdir -p q/r; cp r q/s; mv q/s q/t; ls -l q >/dev/null; rm -r q

# Tools that read text.
ls -lR /usr/lib/python3.13 >r
wc r; sort r | uniq -c | tail -n 1; grep -c py r; sed s/py/px/g r | tail -n 1
awk '{ s += $5; n[$1]++ } END { print s, length(n) }' r
cut -c 1-10 r | head -n 3; tr a-z A-Z <r | tail -n 1
find /etc -type f | xargs cat >/dev/null

# Tools that read bytes.
head -c 3000000 /dev/zero | wc -c; yes | head -n 50000 | wc -l; seq 20000 | tail -n 1
head -n 2 r; for i in 1 2 3 4 5 6; do head -c 50000 /dev/zero | wc -c; seq 3 | wc -l; done
head -c 300000 /dev/urandom >d
sha256sum d; md5sum d; sha1sum d
base64 d | base64 -d | cmp - d
gzip -c d | gunzip | cmp - d
tar -C /usr/lib/python3.13 -c json | tar -t >/dev/null
cp d e; cat e >/dev/null
dd if=/dev/zero of=e bs=64k count=16 2>/dev/null
rm d e r

# A mount: many small files, one large file.
cd /mnt/training
for i in $(seq 16); do ls -l >/dev/null; ls >/dev/null; done
find . -type f | wc -l; cat file-* | wc -c
for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >new-$i; mv new-$i new; done; rm new
dd if=/dev/zero of=large bs=256k count=16 2>/dev/null; sync; cat large >/dev/null; rm large
cd /tmp

# The network: short connections, and data both ways.
ping -c 3 192.168.127.1 >/dev/null
python3 - <<'END'
import os, socket, threading
address = ("host.agent99.internal", int(os.environ["TRAINING_PORT"]))
for turn in range(20):
    with socket.create_connection(address) as connection:
        count = 4 << 20 if turn == 0 else 100
        def send():
            connection.sendall(bytes(count)); connection.shutdown(socket.SHUT_WR)
        sender = threading.Thread(target=send)
        sender.start()
        while True:
            data = connection.recv(1 << 16)
            if not data: break
            count -= len(data)
        sender.join()
        assert count == 0, count
END

# Python: how it starts.
python3 -c 'print(1+1)'
echo 'import sys; print(sys.version)' | python3

# Its interpreter.
python3 - <<'END'
x = 0
for i in range(12000): x += i*i
# Integers of two and more of Python's digits, which have 30 bits.
for i in range(60000, 68000): x += i*i; y = x*x % (i+1) - (x >> 7); z = x // 1000
def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)
fib(15)
s = 0.0
for i in range(1, 8000): s += 1.0/i - i%7*0.5
numbers = [i*3%101 for i in range(8000)]
numbers.sort(); numbers.reverse(); total = sum(numbers) + max(numbers)
d = {str(i): i for i in range(4000)}
for k, v in d.items(): d[k] = v + len(k)
text = "".join(str(i) for i in range(3000))
text.replace("1", "one").split("one"); text.encode().decode(); text.upper().find("999")
class Counter:
    def __init__(self, n): self.n = n
    def next(self): return self.n + 1
sum(c.next() for c in [Counter(i) for i in range(1500)])
for i in range(500):
    try: raise ValueError(i)
    except ValueError as error: str(error)
def count(n):
    for i in range(n): yield i
list(zip(count(2000), map(lambda a: a+1, count(2000)))); set(numbers) & set(range(50))
f"{total:08.3f} {x!r:>10}"
sieve = [True]*6000
for i in range(2, 78):
    if sieve[i]:
        for j in range(i*i, 6000, i): sieve[j] = False
a = [[float(i*j) for j in range(16)] for i in range(16)]
b = [[sum(a[i][k]*a[k][j] for k in range(16)) for j in range(16)] for i in range(16)]
END

# Its interpreter again: numbers that are kept, shared and mixed, and more kinds of objects.
python3 - <<'END'
x = 0.5; y = 2.0; n = 0; kept = []
for i in range(3000):
    x = x * 1.0000001 + i * 0.5 - x / 3.0; n += i; n = n - i // 3 + i % 3 * 2
    y -= x * 1e-9; z = y; kept.append(z); w = -z + abs(x)
    if z < x or w >= y: y = w * 0.25 - y * y * 1e-9
    x = (x * x + z * z) ** 0.5 * 0.5; int(x); round(y, 2); float(i); i / 3; n & 255 | i ^ 7; n << 3 >> 2
def bodies(n):
    b = [[1.0, 2.0, 0.1, -0.2, 5.0], [-3.0, 0.5, 0.3, 0.1, 1.0], [4.0, -1.0, -0.1, 0.2, 2.0]]
    for _ in range(n):
        for i, p in enumerate(b):
            for q in b[i+1:]:
                dx = p[0] - q[0]; dy = p[1] - q[1]; f = 0.01 / (dx*dx + dy*dy + 0.1) ** 1.5
                p[2] -= dx * q[4] * f; p[3] -= dy * q[4] * f; q[2] += dx * p[4] * f; q[3] += dy * p[4] * f
        for p in b: p[0] += 0.01 * p[2]; p[1] += 0.01 * p[3]
bodies(200)
def mandelbrot(size):
    count = 0
    for py in range(size):
        for px in range(size):
            z = 0j; c = complex(2.0*px/size - 1.5, 2.0*py/size - 1.0); a = b = 0.0; i = 0
            while i < 12 and a*a + b*b < 4.0: a, b = a*a - b*b + c.real, 2.0*a*b + c.imag; i += 1
            count += i; z = z*z + c
    return count
mandelbrot(24)
def queens(n, row=0, cols=0, d1=0, d2=0):
    if row == n: return 1
    total = 0
    for c in range(n):
        if not (cols >> c & 1 or d1 >> (row+c) & 1 or d2 >> (row-c+n) & 1):
            total += queens(n, row+1, cols | 1 << c, d1 | 1 << (row+c), d2 | 1 << (row-c+n))
    return total
queens(6)
def tree(d): return (tree(d-1), tree(d-1)) if d else (None, None)
def check(t): return 1 + check(t[0]) + check(t[1]) if t[0] else 1
check(tree(9))
def permute(n):
    p = list(range(n)); c = [0]*n; i = 0
    while i < n:
        if c[i] < i:
            k = c[i] if i & 1 else 0; p[k], p[i] = p[i], p[k]; c[i] += 1; i = 0
        else: c[i] = 0; i += 1
permute(6)
class Vector:
    __slots__ = ("x", "y")
    def __init__(self, x, y): self.x = x; self.y = y
    def __add__(self, o): return Vector(self.x + o.x, self.y + o.y)
    def __eq__(self, o): return self.x == o.x and self.y == o.y
    def __lt__(self, o): return self.x < o.x
    def __hash__(self): return hash((self.x, self.y))
    @property
    def norm(self): return (self.x*self.x + self.y*self.y) ** 0.5
class Base:
    kind = "base"
    def __init__(self, name, **options): self.name = name; self.__dict__.update(options)
    def area(self, scale=1): return scale
    @staticmethod
    def zero(): return 0
    @classmethod
    def make(cls, *names): return [cls(name, size=i) for i, name in enumerate(names)]
class Derived(Base):
    kind = "derived"
    def area(self, scale=1): return super().area(scale) * self.size
v = Vector(0, 0.0)
for i in range(600): v = v + Vector(i & 3, 0.5); v.norm; v == v; v < Vector(1, 2); {v: i}
for shape in Derived.make(*"abcdefgh") * 60:
    shape.area(scale=2); isinstance(shape, Base); getattr(shape, "size", None); shape.zero(); shape.kind; setattr(shape, "x", 1)
def outer():
    total = 0
    def inner(step=1):
        nonlocal total; total += step
        return total
    return inner
step = outer()
for i in range(600): step(); step(step=2)
def chunks(items, n):
    for i in range(0, len(items), n): yield items[i:i+n]
def flat(parts):
    for part in parts: yield from part
list(flat(chunks(list(range(1500)), 7)))
text = "the quick brown fox jumps over the lazy dog, 42 times; " * 40
counts = {}
for word in text.split():
    word = word.strip(",;").lower(); counts[word] = counts.get(word, 0) + 1
    if word.startswith("q") or word.endswith("x") or "o" in word: counts[word[::-1]] = len(word)
    word.isdigit() and int(word); word == "fox"; word in counts; word[0]; word[1:-1]
sorted(counts.items(), key=lambda item: (-item[1], item[0])); max(counts, key=counts.get); del counts["the"]
out = ""
for i, c in enumerate(text[:600]): out += chr(ord(c) ^ 1) if c.isalpha() else "%d:%s" % (i, c)
lines = ["{:>5} {}".format(i, c) for i, c in zip(range(200), text)]; "\n".join(lines).splitlines()
data = bytearray(text.encode())
for i in range(0, 600): data[i] = data[i] * 7 + 1 & 255
bytes(data).hex(); data.find(b"x"); sum(data)
grid = [[0]*20 for _ in range(20)]
for turn in range(4):
    for r in range(20):
        for c in range(20): grid[r][c] = sum(grid[(r+i) % 20][(c+j) % 20] for i in (0, 1) for j in (0, 1)) + 1 & 3
table = {(r, c): value for r, row in enumerate(grid) for c, value in enumerate(row) if value}
a, *rest = sorted(set(table.values())); any(v > 2 for v in rest); all(map(bool, rest)); [*rest, *rest]; {**counts, "a": 1}
for i in range(400):
    try:
        if i % 3 == 0: [][i]
        elif i % 3 == 1: {}["k"]
        else: int("x")
    except (IndexError, KeyError) as error: error.args
    except ValueError: pass
    finally: n = i
match n:
    case 1: pass
    case _: n = 0
2**300 % 10**50; (3**200).bit_length(); str(7**150); pow(3, 10**20, 10**9 + 7); n = 1
for i in range(1, 150): n *= i
while n > 10**9: n //= 7; n -= 1
END

# Its library.
python3 - <<'END'
import collections, datetime, functools, hashlib, io, itertools, json, math, os, random, re
import string, subprocess, tempfile
data = [{"id": i, "name": "n%d" % i, "tags": ["a", "b"], "x": i/7} for i in range(200)]
text = json.dumps(data)
assert json.loads(text) == data
json.dumps(data, indent=1, sort_keys=True)
words = re.findall(r"[a-z]+\d+", text)
re.sub(r"(\w+)@(\w+)", r"\2", "me@home " * 100)
collections.Counter(words).most_common(3)
hashlib.sha256(text.encode()*20).hexdigest()
random.seed(1); random.shuffle(words); sorted(words, key=len)
sum(math.sqrt(i)*math.sin(i) for i in range(1500))
with tempfile.NamedTemporaryFile("w+") as file:
    file.writelines(word + "\n" for word in words); file.seek(0); len(file.readlines())
subprocess.run(["/bin/echo", "hi"], capture_output=True)
os.listdir("/etc"); datetime.datetime.now().isoformat()
END
python3 - <<'END'
import bisect, collections, contextlib, dataclasses, functools, heapq, itertools, operator, pathlib, struct
@dataclasses.dataclass(order=True)
class Task: cost: int; name: str = ""
heap = []
for i in range(400): heapq.heappush(heap, (i * 7919 % 401, i))
while heap: heapq.heappop(heap)
sorted(Task(i * 31 % 17, "t%d" % i) for i in range(120))
queue = collections.deque(maxlen=50); groups = collections.defaultdict(list)
for i in range(800): queue.append(i); groups[i % 13].append(i)
while queue: queue.popleft()
@functools.lru_cache(maxsize=None)
def ways(n, k): return 1 if n == 0 else 0 if n < 0 or k == 0 else ways(n, k-1) + ways(n-k, k)
ways(40, 40)
@contextlib.contextmanager
def opened(x): yield x
for i in range(60):
    with opened(i) as j: pass
Point = collections.namedtuple("Point", "x y")
for i in range(300): p = Point(i, i); p.x + p.y; struct.unpack("<IHB", struct.pack("<IHB", i, i, i & 255))
functools.reduce(operator.add, itertools.chain(range(400), itertools.accumulate(range(400))))
[k for k, g in itertools.groupby(sorted(range(300), key=lambda i: i % 9), key=lambda i: i % 9)]
keys = sorted(range(0, 3000, 3)); [bisect.bisect(keys, i) for i in range(400)]
for path in pathlib.Path("/etc").iterdir(): path.name; path.suffix
with open("r", "w") as file:
    for i in range(500): print(i, "line", file=file)
with open("r") as file: sum(len(line.split()) for line in file)
END
python3 - <<'END'
import base64, csv, decimal, io, sqlite3, urllib.parse, zlib
db = sqlite3.connect(":memory:")
db.execute("create table t(a integer primary key, b text)")
db.executemany("insert into t(b) values(?)", [(str(i),) for i in range(500)])
db.execute("select count(*), max(b) from t where b like ?", ("%1%",)).fetchall()
list(csv.reader(io.StringIO("a,b,c\n"*300)))
decimal.Decimal(2).sqrt(); urllib.parse.quote("a b"*50)
zlib.decompress(zlib.compress(b"abc"*5000))
text = b"".join(b"%d: line %d of a file\n" % (i*i % 977, i) for i in range(4000))
for level in 1, 6, 9: assert zlib.decompress(zlib.compress(text, level)) == text
END
