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
