//! AOT regions: the image's regions behave like the interpreter, and are dropped with the
//! code they were made from.

use crate::common::{builder, succeeded};
use a99_sandbox::{GuestJit, Sandbox, block_on};

fn start(guest_jit: GuestJit) -> Sandbox {
    let builder = builder().guest_jit(guest_jit);
    builder.start_blocking().expect("a sandbox")
}

/// Exit code (for a signal, 128 plus its number) and standard output.
fn python(sandbox: &Sandbox, code: &str) -> (i32, String) {
    let output = block_on(sandbox.command(["python3", "-c", code]).output());
    let output = output.expect("it runs");
    (output.exit_code(), output.stdout_text())
}

/// Prints results that depend on every bit: integers of all sizes, floating point with its
/// flags, sorting, hashes, text.
const WORK: &str = r#"
import hashlib, json, math, random, re, struct, zlib
random.seed(5)
h = hashlib.sha256()
def put(*values): h.update(repr(values).encode())
for i in range(3000):
    a, b = random.getrandbits(64), random.getrandbits(63) + 1
    put(a // b, a % b, a * b, a ^ b, a >> (b & 63), -a // b, (a * a) >> 64)
    x, y = struct.unpack("<dd", struct.pack("<QQ", a, b))
    put(x + y, x * y, x < y, math.isnan(x), repr(y))
    z = random.uniform(-9, 9)
    put(round(z, 3), math.floor(z), z ** 3, math.exp(z), "%.17g" % z, float(str(z)))
words = [format(random.getrandbits(40), "x") for _ in range(3000)]
put(sorted(words), sorted(words, key=lambda w: w[::-1]), sorted(map(float, range(99))))
text = json.dumps({w: [i, i / 3, w.upper()] for i, w in enumerate(words)})
put(json.loads(text)[words[7]], re.sub("[0-9]+", lambda m: str(len(m[0])), text))
data = text.encode()
put(zlib.crc32(data), zlib.adler32(data), zlib.compress(data), hashlib.md5(data).digest())
print(h.hexdigest())
"#;

#[test]
#[ignore = "needs the image"]
fn the_same_work_gives_the_same_bytes() {
    let interpreted = python(&start(GuestJit::Off), WORK);
    assert_eq!(interpreted.0, 0);
    assert_eq!(interpreted.1.len(), 65);
    assert_eq!(python(&start(GuestJit::Aot), WORK), interpreted);
}

/// Replaces the first instruction of Python in its file, which stays at the same place in
/// memory, and restores it.
#[test]
#[ignore = "needs the image"]
fn code_that_is_written_over_is_gone() {
    const PATCH: &str = r#"
p=$(readlink -f "$(command -v python3)")
word() { od -An -v -t u4 -j "$1" -N 4 "$p" | tr -d ' '; }
# The file offset of the entry point, of a program that is linked to 64 KiB.
at=$(($(word 24) - 65536)); test "$at" -gt 0
old=$(dd if="$p" bs=1 skip=$at count=4 2>/dev/null | od -An -v -t o1 | sed 's/ /\\/g')
patch() { printf "$1" | dd of="$p" bs=1 seek=$at conv=notrunc 2>/dev/null; }
"#;
    let sandbox = start(GuestJit::Aot);
    // The file belongs to the guest's administrator.
    let patch = |bytes: &str| {
        let script = format!("{PATCH}\nprintf '%s' \"$old\"\npatch \"{bytes}\"");
        let command = sandbox.command(["sh", "-ec", &script]).root();
        succeeded("patch", block_on(command.output()).expect("it runs"))
    };
    assert_eq!(python(&sandbox, "print(1)"), (0, "1\n".to_owned()));
    let old = patch(r"\0\0\0\0");
    const SIGILL: i32 = 4;
    assert_eq!(python(&sandbox, "print(1)").0, 128 + SIGILL);
    patch(&old);
    assert_eq!(python(&sandbox, "print(1)"), (0, "1\n".to_owned()));
}
