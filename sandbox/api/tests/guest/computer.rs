//! A guest as people expect a computer: memory as much as they ask for, a locale, line
//! editing, and `pip` without needless work.

use crate::common::{builder, sh, start};
use crate::fork::COPIES;
use a99_sandbox::{Output, Sandbox, block_on};
use std::time::{Duration, Instant};

const MB: u64 = 1 << 20;

fn python(sandbox: &Sandbox, program: &str) -> Output {
    block_on(sandbox.command(["python3", "-c", program]).output()).expect("it runs")
}

/// Kilobytes of a field of `/proc/meminfo`.
fn meminfo(sandbox: &Sandbox, field: &str) -> u64 {
    let line = sh(sandbox, &format!("grep {field}: /proc/meminfo"));
    let number = line.split_whitespace().nth(1).expect("a number");
    number.parse().expect("a number")
}

/// Kilobytes that files in the root may have.
fn root_size(sandbox: &Sandbox) -> u64 {
    let size = sh(sandbox, "df -k / | awk 'END { print $2 }'");
    size.trim().parse().expect("a number")
}

/// Fills 1.5 GB, so that every page is written.
const FILL: &str = "b = b'x' * (1500 << 20); print(len(b) >> 20, b[-1])";

#[test]
#[ignore = "needs the image"]
fn a_guest_has_the_memory_that_it_was_asked_for() {
    let small = start();
    let large = builder().ram(2048 * MB).start_blocking().expect("2 GB");
    let filled = python(&large, FILL);
    assert_eq!(
        filled.stdout_text(),
        "1500 120\n",
        "{}",
        filled.stderr_text()
    );
    // The session's shell has it too, and files in memory.
    assert_eq!(sh(&large, &format!("python3 -c \"{FILL}\"")), "1500 120\n");
    let added = meminfo(&large, "MemTotal") - meminfo(&small, "MemTotal");
    assert_eq!(added, (1920 - 256) << 10);
    sh(
        &large,
        "head -c 300000000 /dev/zero >/tmp/file && rm /tmp/file",
    );
    block_on(large.stop());
    for sandbox in [
        small,
        builder().ram(1024 * MB).start_blocking().expect("1 GB"),
    ] {
        let failed = python(&sandbox, FILL);
        assert_ne!(failed.exit_code(), 0);
        let refused = failed.stderr_text().contains("MemoryError");
        assert!(refused || failed.out_of_memory(), "{failed:?}");
        assert_eq!(sh(&sandbox, "echo on"), "on\n");
    }
}

/// Writes 1 GB of lines that all differ, in files of 100 MB, and prints its hash.
const WRITE: &str = "\
import hashlib
sums = hashlib.md5()
for part in range(10):
    with open(f'/tmp/part{part}', 'wb') as file:
        for block in range(100):
            text = (f'{part} {block} ' * 250000)[:1000000].encode()
            sums.update(text)
            file.write(text)
print(sums.hexdigest())
";

/// Reads the files again, and prints their hash.
const READ: &str = "cat /tmp/part0 /tmp/part1 /tmp/part2 /tmp/part3 /tmp/part4 /tmp/part5 \
                    /tmp/part6 /tmp/part7 /tmp/part8 /tmp/part9 | md5sum | cut -d' ' -f1";

/// Reads some of them.
const PART: &str = "cat /tmp/part2 /tmp/part9 | md5sum";

#[test]
#[ignore = "needs the image"]
fn files_that_do_not_fit_memory_go_to_a_disk() {
    let sandbox = start();
    assert_eq!(meminfo(&sandbox, "SwapTotal"), (4 << 20) - 4);
    assert_eq!(meminfo(&sandbox, "SwapFree"), (4 << 20) - 4);
    let written = python(&sandbox, WRITE);
    let sum = written.stdout_text();
    assert_eq!(sum.len(), 33, "{}", written.stderr_text());
    assert_eq!(sh(&sandbox, READ), sum);
    assert!(meminfo(&sandbox, "SwapFree") < 3500 << 10);
    // Programs are not moved: one that takes too much ends at once.
    let start = Instant::now();
    let failed = python(&sandbox, "b = [b'x' * 1000000 for i in range(1000)]");
    assert!(failed.out_of_memory(), "{failed:?}");
    let refused = python(&sandbox, "b = bytearray(1 << 30)");
    assert!(refused.stderr_text().contains("MemoryError"), "{refused:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    // Copies have the files too, and change only their own.
    let part = sh(&sandbox, PART);
    for copy_of in COPIES {
        let copy = copy_of(&sandbox, builder());
        sh(
            &copy,
            "rm /tmp/part0; echo other >/tmp/part1; echo new >/tmp/new",
        );
        assert_eq!(sh(&copy, PART), part);
        assert_eq!(sh(&sandbox, PART), part);
        assert_eq!(sh(&copy, "cat /tmp/part1 /tmp/new"), "other\nnew\n");
        assert_eq!(sh(&copy, "wc -c </tmp/part9"), "100000000\n");
    }
    // Space of files that are gone is free again.
    sh(&sandbox, "rm /tmp/part*");
    assert!(meminfo(&sandbox, "SwapFree") > 4000 << 10);
}

#[test]
#[ignore = "needs the image"]
fn files_stay_in_memory_if_asked_to() {
    for (ram, most) in [(256, 160 << 10), (512, 300 << 10)] {
        let small = builder().ram(ram * MB).files_in_memory();
        let small = small.start_blocking().expect("a sandbox");
        assert!(root_size(&small) < most);
        let full = block_on(small.exec("head -c 400M /dev/zero >/tmp/file"));
        let full = full.expect("it runs");
        assert!(full.stderr_text().contains("No space left"), "{full:?}");
        let failed = python(&small, "b = [b'x' * 1000000 for i in range(1000)]");
        assert!(failed.out_of_memory(), "{failed:?}");
        let copy = block_on(small.fork(builder())).expect("a fork");
        for sandbox in [&small, &copy] {
            let free = meminfo(sandbox, "SwapFree");
            assert_eq!(free, meminfo(sandbox, "SwapTotal"));
            assert_eq!(sh(sandbox, "rm /tmp/file; echo on"), "on\n");
        }
    }
}

#[test]
#[ignore = "needs the image"]
fn a_saved_guest_keeps_its_memory() {
    let large = builder().ram(640 * MB).start_blocking().expect("640 MB");
    sh(&large, "head -c 250000000 /dev/urandom >/tmp/file");
    let sum = sh(&large, "sha256sum /tmp/file");
    let total = meminfo(&large, "MemTotal");
    let saved = block_on(large.snapshot()).expect("saved");
    block_on(large.stop());
    let other = builder().restore(saved).start_blocking().expect("restored");
    assert_eq!(meminfo(&other, "MemTotal"), total);
    assert_eq!(sh(&other, "sha256sum /tmp/file"), sum);
    let filled = python(&other, "print(len(b'x' * (250 << 20)))");
    assert_eq!(filled.stdout_text(), format!("{}\n", 250 << 20));
}

#[test]
#[ignore = "needs the image"]
fn the_locale_is_utf_8() {
    let sandbox = start();
    let locale = sh(&sandbox, "locale");
    assert!(locale.contains("LANG=C.UTF-8\n"), "{locale}");
    assert!(sh(&sandbox, "locale charmap").contains("UTF-8"));
    let program =
        "import locale, sys; print(sys.stdout.encoding, locale.setlocale(locale.LC_ALL, ''))";
    assert_eq!(python(&sandbox, program).stdout_text(), "utf-8 C.UTF-8\n");
    assert_eq!(sh(&sandbox, "bash -c 'x=日本; echo ${#x}'"), "2\n");
    assert_eq!(
        sh(&sandbox, "mkdir /tmp/x; cd /tmp/x; touch 日本語 é; ls"),
        "é\n日本語\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn python_has_readline() {
    let sandbox = start();
    let program = "import readline; readline.parse_and_bind('tab: complete'); print(readline.get_line_buffer() == '')";
    let output = python(&sandbox, program);
    assert_eq!(output.stdout_text(), "True\n", "{}", output.stderr_text());
}

/// A wheel with one module.
const WHEEL: &str = "\
import zipfile
with zipfile.ZipFile('/tmp/demo-1.0-py3-none-any.whl', 'w') as wheel:
    info = 'demo-1.0.dist-info/'
    wheel.writestr('demo.py', 'answer = 42')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
";

#[test]
#[ignore = "needs the image"]
fn pip_leaves_compiling_to_the_first_import() {
    let sandbox = start();
    let made = python(&sandbox, WHEEL);
    assert_eq!(made.exit_code(), 0, "{}", made.stderr_text());
    sh(
        &sandbox,
        "pip install -q --no-index /tmp/demo-1.0-py3-none-any.whl",
    );
    let compiled = "find / -xdev -name 'demo.cpython-*.pyc' | wc -l";
    assert_eq!(sh(&sandbox, compiled), "0\n");
    assert_eq!(
        sh(
            &sandbox,
            "cd /tmp; python3 -c 'import demo; print(demo.answer)'"
        ),
        "42\n"
    );
    assert_eq!(sh(&sandbox, compiled), "1\n");
}
