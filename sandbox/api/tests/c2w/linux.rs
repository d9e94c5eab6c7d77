//! Commands over the console of a real Linux: an image with the machine, the kernel and the
//! files of our own guest, but neither its agent nor its channels.
//!
//! These need the parts of a built image (`cargo xtask guest`).

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{run, text};
use a99_sandbox::c2w::{Image, Machine, Mount, Options, Run};
use a99_sandbox::cache::Cache;
use a99_sandbox::vm::VmCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static LINUX: LazyLock<Image> = LazyLock::new(|| crate::common::build("tests/c2w_linux/image.rs"));

fn start(mounts: Vec<Mount>) -> Machine {
    let cache = Cache::of_user().expect("a cache");
    let part = |step: &str, file: &str| {
        let entry = cache
            .current(step)
            .expect("a cache")
            .expect("a built image");
        let file = entry.path(file);
        Mount {
            guest: format!("/{step}"),
            host: file.parent().expect("a folder").to_owned(),
            read_only: true,
            ..Mount::default()
        }
    };
    let mut all = vec![part("kernel", "Image"), part("rootfs", "rootfs.cpio")];
    all.extend(mounts);
    let options = Options {
        mounts: all,
        ..Options::default()
    };
    Machine::start(&LINUX, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
#[ignore = "needs the image's parts"]
fn a_real_shell_on_a_real_terminal() {
    let began = Instant::now();
    let machine = start(Vec::new());
    println!("start: {:?}", began.elapsed());
    assert_eq!(text(&machine, "echo hello"), "hello\n");
    assert_eq!(text(&machine, "python3 -c 'print(100 + 200)'"), "300\n");
    assert_ne!(run(&machine, "ls /nonexistent").exit_code, 0);
    text(&machine, "export MYVAR=foobar; cd /usr");
    assert_eq!(text(&machine, "echo $MYVAR; pwd"), "foobar\n/usr\n");
    let bytes = "printf '\\377\\0\\001\\036\\r\\n\\n\\t'";
    assert_eq!(run(&machine, bytes).stdout, b"\xff\0\x01\x1e\r\n\n\t");
    assert_eq!(
        text(&machine, "cat <<E\n'a' \"b\" \u{1} ä\nE"),
        "'a' \"b\" \u{1} ä\n"
    );
    for code in [0, 1, 42, 255] {
        assert_eq!(
            run(&machine, &format!("sh -c 'exit {code}'")).exit_code,
            code
        );
    }
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(text(&machine, "echo hi"), "hi\n");
    }
    println!("echo: {:?}", began.elapsed() / 20);

    // AgentVM did not survive these.
    assert_eq!(text(&machine, "cat"), "");
    assert_ne!(run(&machine, "echo \"open").exit_code, 0);
    let output = run(&machine, "cd /etc; exit 7");
    assert_eq!((output.exit_code, output.session_reset), (7, true));
    assert_eq!(text(&machine, "echo $MYVAR; pwd"), "foobar\n/etc\n");
    let short = Run {
        timeout: Some(Duration::from_secs(1)),
        ..Run::default()
    };
    for endless in [
        "sleep 1000",
        "while :; do :; done",
        "yes >/dev/null",
        "cat /dev/tty",
        "python3 -c 'while True: pass'",
    ] {
        let error = machine.exec(endless, &short).expect_err(endless);
        assert_eq!(error.code, VmCode::TimedOut, "{endless}: {error}");
        assert!(!error.text.contains("still runs"), "{endless}: {error}");
        assert_eq!(text(&machine, "echo back"), "back\n", "{endless}");
    }
    // Which limit an endless writer reaches first depends on the machine's speed, unless
    // one of them is far away.
    let little = Run {
        timeout: Some(Duration::from_secs(60)),
        output_limit: 1 << 20,
        ..Run::default()
    };
    let error = machine.exec("yes", &little).expect_err("yes");
    assert_eq!(error.code, VmCode::OutputLimit, "{error}");
    assert_eq!(text(&machine, "echo back"), "back\n");
}

#[test]
#[ignore = "needs the image's parts"]
fn much_goes_both_ways() {
    let machine = start(Vec::new());
    let word: String = (0..16_000)
        .map(|n| char::from(b'a' + (n % 26) as u8))
        .collect();
    let began = Instant::now();
    assert_eq!(
        text(&machine, &format!("echo '{word}'")),
        format!("{word}\n")
    );
    println!("16 KB of script: {:?}", began.elapsed());
    let began = Instant::now();
    let output = run(&machine, "head -c 1048576 /dev/zero");
    assert_eq!(output.stdout.len(), 1 << 20);
    println!("1 MB of output: {:?}", began.elapsed());
    assert_eq!(
        text(
            &machine,
            "ls -a /dev/shm /run /tmp 2>/dev/null | grep -c 'run$' || true"
        ),
        "0\n"
    );
}
