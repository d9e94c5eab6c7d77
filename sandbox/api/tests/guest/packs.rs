//! Layers and packs: what a guest that was started with them can do, and cannot.
//!
//! Tests of packs need them in the cache: `cargo xtask packs` builds packs and runs these.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::builder;
use crate::fork::COPIES;
use a99_sandbox::cache::digest;
use a99_sandbox::{Builder, Layer, Sandbox, VmCode, block_on};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Exit code and both outputs.
fn run(sandbox: &Sandbox, text: &str) -> (i32, String) {
    let output = block_on(sandbox.exec(text)).expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &output.stderr_text();
    (output.exit_code(), said)
}

/// Runs scripts that must succeed and say something.
fn all(sandbox: &Sandbox, scripts: &[(&str, &str)]) {
    for (text, expected) in scripts {
        let (code, said) = run(sandbox, text);
        let is_good = code == 0 && said.contains(expected);
        assert!(is_good, "{text}: {code} {said}");
    }
}

fn put(sandbox: &Sandbox, path: &str, text: &str) {
    let (code, said) = run(sandbox, &format!("cat >{path} <<'END'\n{text}END\n"));
    assert_eq!(code, 0, "{path}: {said}");
}

fn with(pack: &str) -> Sandbox {
    builder().pack(pack).start_blocking().expect("a guest")
}

/// A layer of these files.
fn layer(folder: &Path, name: &str, files: &[(&str, &str)]) -> Layer {
    let tree = folder.join(name);
    for (path, text) in files {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let file = folder.join(format!("{name}.erofs"));
    let made = Command::new("mkfs.erofs")
        .args(["--quiet", "--all-root", "-x-1"])
        .args([&file, &tree])
        .status();
    assert!(made.unwrap().success());
    Layer::open(&file, &digest::of_file(&file).unwrap()).expect("a layer")
}

#[test]
#[ignore = "needs the image"]
fn layers_are_merged_and_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let first = [
        ("opt/both", "first"),
        ("usr/bin/hello", "#!/bin/sh\necho hello from a layer"),
        ("usr/lib/python3/dist-packages/ours.py", "answer = 42"),
    ];
    let first = layer(folder.path(), "first", &first);
    let second = layer(
        folder.path(),
        "second",
        &[("opt/both", "2"), ("opt/two", "two")],
    );
    let other = layer(folder.path(), "other", &[("opt/other", "")]);
    let start = |disk: bool| {
        let builder = builder().layer(&first).layer(&second);
        let builder = if disk {
            builder.disk(64 << 20)
        } else {
            builder
        };
        builder.start_blocking().expect("a guest")
    };
    for disk in [false, true] {
        let sandbox = start(disk);
        all(
            &sandbox,
            &[
                ("hello", "hello from a layer"),
                ("cat /opt/both /opt/two", "firsttwo"),
                // A folder that the image's root only links to its disk has both files.
                ("python3 -c 'import ours, pip; print(ours.answer)'", "42"),
                ("git --version && jq --version", "git version"),
                ("touch /made /tmp/made && stat -c %a /", "1777"),
                ("df -P / | tail -1 | awk '{ print ($4 > 50000) }'", "1"),
            ],
        );
        // The administrator changes the guest's copy, never the layer.
        let script = "echo changed >/opt/both && cat /opt/both && rm /opt/two";
        let root = sandbox.command(["sh", "-c", script]).root();
        let output = block_on(root.output()).expect("it runs");
        assert_eq!(output.stdout, b"changed\n", "{}", output.stderr_text());
        for path in ["/var/lib/agent99/layers", "/var/lib/agent99/disk"] {
            let (code, said) = run(&sandbox, &format!("ls {path}"));
            assert_ne!(code, 0, "{path}: {said}");
        }
        let put = sandbox.command(["sh", "-c", "touch /tmp/kept"]);
        assert_eq!(block_on(put.output()).expect("it runs").exit_code(), 0);
        let refused = |builder: Builder| block_on(sandbox.fork(builder)).unwrap_err().code;
        // A copy needs its layers, in any order, and no other one.
        assert_eq!(refused(builder()), VmCode::Saved);
        assert_eq!(refused(builder().layer(&first)), VmCode::Saved);
        let layered = || builder().layer(&second).layer(&first);
        assert_eq!(refused(layered().layer(&other)), VmCode::BadOption);
        for copy in COPIES {
            all(
                &copy(&sandbox, layered()),
                &[
                    (
                        "hello && cat /opt/both && ls /tmp/kept",
                        "changed\n/tmp/kept",
                    ),
                    (
                        "ls /opt/two || python3 -c 'import ours; print(ours.answer)'",
                        "42",
                    ),
                ],
            );
        }
        block_on(sandbox.stop());
        // Another guest sees the layer as it was.
        all(&start(disk), &[("cat /opt/both /opt/two", "firsttwo")]);
    }
}

#[test]
#[ignore = "needs the image"]
fn a_pack_that_was_not_built_is_named() {
    let error = builder().pack("nosuchpack").start_blocking().unwrap_err();
    assert_eq!(error.code, VmCode::NoImage);
    let build = "`a99 sandbox build --pack nosuchpack`";
    assert!(error.text.contains(build), "{}", error.text);
}

#[test]
#[ignore = "needs the image and a pack"]
fn py_computes_and_draws() {
    let sandbox = with("py");
    let program = "import numpy as np, pandas as pd
a = np.arange(12.).reshape(3, 4)
print(np.linalg.solve(a[:, :3] + np.eye(3), a[:, 3]).shape)
frame = pd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 3]})
print(frame.groupby('k').v.sum().to_dict())
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
from matplotlib import font_manager as fonts
key = lambda e: (e.fname, e.name, e.style, e.variant, str(e.weight), e.stretch, e.size)
for kept, new in zip(vars(fonts.fontManager).values(), vars(fonts.FontManager()).values()):
    if isinstance(kept, list): assert sorted(map(key, kept)) == sorted(map(key, new))
import os.path
assert not os.path.exists(matplotlib.get_cachedir() + '/fontlist-v390.json'), 'a list was made'
plt.plot([1, 4, 9])
plt.title('squares')
plt.savefig('/tmp/plot.png')
from PIL import Image
image = Image.open('/tmp/plot.png')
image.load()
print(image.format, image.size)
import requests
print(requests.__name__)
";
    put(&sandbox, "/tmp/program.py", program);
    let test =
        "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): assert n < 3\n";
    put(&sandbox, "/tmp/test_it.py", test);
    all(
        &sandbox,
        &[
            (
                "python3 /tmp/program.py",
                "{'a': 4, 'b': 2}\nPNG (640, 480)\nrequests",
            ),
            ("cd /tmp && python3 -m pytest -q test_it.py", "2 passed"),
            ("pip --version", "pip 2"),
        ],
    );
}

#[test]
#[ignore = "needs the image and a pack"]
fn tools_do_their_work() {
    all(
        &with("tools"),
        &[
            (
                "mkdir /tmp/t && cd /tmp/t && echo needle >a.txt && rg -n needle",
                "a.txt:1:needle",
            ),
            ("fd txt /tmp/t", "/tmp/t/a.txt"),
            (
                "sqlite3 /tmp/t/db 'create table t(a); insert into t values(7); select a*6 from t'",
                "42",
            ),
            ("echo '{\"a\": [1, 2]}' | jq -c .a", "[1,2]"),
            (
                "cd /tmp/t && zstd -q a.txt && rm a.txt && zstd -dq a.txt.zst && cat a.txt",
                "needle",
            ),
            (
                "ssh-keygen -q -t ed25519 -N '' -f /tmp/t/key && cat /tmp/t/key.pub",
                "ssh-ed25519",
            ),
            ("ssh -V", "OpenSSH"),
            (
                "vim -es -c '%s/needle/thread/' -c wq /tmp/t/a.txt; cat /tmp/t/a.txt",
                "thread",
            ),
        ],
    );
}

#[test]
#[ignore = "needs the image and a pack"]
fn build_compiles_links_and_makes() {
    let sandbox = with("build");
    let hello = "#include <stdio.h>\n#include <math.h>\nint main(int n, char **v) \
                 { printf(\"hello %.0f\\n\", sqrt(n * 4.0)); return 0; }\n";
    put(&sandbox, "/tmp/hello.c", hello);
    let lists = "cmake_minimum_required(VERSION 3.20)\nproject(hello C)\n\
                 add_executable(hello hello.c)\ntarget_link_libraries(hello m)\n";
    put(&sandbox, "/tmp/CMakeLists.txt", lists);
    all(
        &sandbox,
        &[
            ("cd /tmp && cc -O2 -Wall hello.c -o a -lm && ./a", "hello 2"),
            (
                "cd /tmp && rm a && make CFLAGS=-O1 LDLIBS=-lm hello && ./hello",
                "hello 2",
            ),
            (
                "cd /tmp && cmake -B out . && cmake --build out && out/hello",
                "hello 2",
            ),
            ("git --version", "git version"),
        ],
    );
}

#[test]
#[ignore = "needs the image and a pack"]
fn node_runs_scripts_and_npm_works_offline() {
    all(
        &with("node"),
        &[
            (
                "node -e 'console.log([1, 2, 3].map(n => n * n).join())'",
                "1,4,9",
            ),
            ("node --version", "v20."),
            ("npm --version", "10."),
            (
                "mkdir /tmp/p && cd /tmp/p && npm init -y && npm pack",
                "p-1.0.0.tgz",
            ),
            ("npm config get prefix", "/home/agent/.local"),
        ],
    );
}
