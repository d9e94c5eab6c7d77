//! The guest's small tools give the same bytes as the host's.

use super::support::{Numbers, in_guest, on_host};
use crate::common::start;
use std::path::Path;

/// Lines of the input table.
const LINES: u32 = 3000;

/// Scripts that read the table from standard input.
const TEXT: &[&str] = &[
    "awk -F, '{ n[$2]++; s[$2] += $3 } END { for (k in n) printf \"%s %d %.3f\\n\", k, n[k], s[k] / n[k] }' | sort",
    "awk -F, 'NR % 7 == 0 { gsub(/a+/, \"<&>\", $4); print NR \": \" toupper(substr($4, 2, 9)), length($4) }'",
    "awk -F, '{ x = (x * 31 + $1) % 65521 } END { print x; printf \"%e %g %c %05d %-8s|\\n\", x, x / 7, 65, x, \"ab\" }'",
    "awk 'BEGIN { FS = \",\" } $3 > 50 && $4 ~ /^[b-k]/ { c++ } END { print c + 0, index(\"abc\", \"c\"), split(\"a:b:c\", p, \":\"), p[3] }'",
    "sort",
    "sort -t, -k3,3n -k1,1nr",
    "sort -t, -k2,2 -s | head -n 500",
    "sort -r -u",
    "cut -d, -f2 | sort | uniq -c",
    "cut -d, -f2,4 | sort -u | tail -n 20",
    "sed -n '10,20p;$='",
    "sed 's/\\([a-z]*\\),\\([0-9]*\\)/\\2-\\1/g; /k.*z/d'",
    "sed '1!G;h;$!d' | head -n 50",
    "sed -e '/^1/{s/a/A/2;n;d;}' -e 'y/xyz/XYZ/'",
    "tr a-z A-Z | tr -d '0-4' | tr -s ','",
    "grep -n 'a[bc]*d' | head -n 100",
    "grep -v -c '[qz]'; true",
    "head -c 1000 | tail -c 300",
    "paste -d: - - | head -n 10",
    "wc -l | tr -d ' '",
    "nl -ba | tail -n 3",
];

/// Scripts that read arbitrary bytes from standard input.
const BINARY: &[&str] = &[
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "od -An -v -tx1",
    "base64",
    "base64 | base64 -d",
    "gzip -9 | gunzip",
    "bzip2 | bunzip2",
    "tr '\\000-\\177' '\\200-\\377'",
    "dd bs=37 skip=11 count=100 2>/dev/null",
    "tail -c 4097 | head -c 4096",
    "cat - /dev/null | wc -c | tr -d ' '",
];

fn table() -> Vec<u8> {
    let mut numbers = Numbers(3);
    let mut text = String::new();
    for line in 0..LINES {
        let group = ["red", "green", "blue", "grey"][(numbers.next() % 4) as usize];
        let amount = numbers.next() % 100_000;
        let word: String = (0..numbers.next() % 12)
            .map(|_| char::from(b'a' + (numbers.next() % 26) as u8))
            .collect();
        let (whole, part) = (amount / 1000, amount % 1000);
        text += &format!("{},{group},{whole}.{part:03},{word}\n", line * 7 % LINES);
    }
    text.into_bytes()
}

#[test]
#[ignore = "needs the image"]
fn tools_print_what_the_hosts_tools_print() {
    let sandbox = start();
    let (table, bytes) = (table(), Numbers(5).bytes(100_000));
    let inputs = [(TEXT, &table), (BINARY, &bytes)];
    for (scripts, input) in inputs {
        for script in scripts {
            // A failure in the middle of a pipe would be equal on both.
            let argv = ["sh", "-c", script];
            let theirs = on_host(&argv, input, Path::new("/"));
            let ours = in_guest(&sandbox, &argv, input);
            assert!(!theirs.is_empty(), "{script} prints nothing");
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(
                ours == theirs,
                "{script}\n{}\n{}",
                shown(&ours),
                shown(&theirs)
            );
        }
    }
}

/// Makes a tree of files below the current folder.
const MAKE_TREE: &str = "mkdir -p tree/deep/deeper && cd tree && \
    cat >bytes && head -c 70000 bytes >deep/part && : >deep/empty && \
    printf 'a b' >'deep/deeper/a name with spaces' && ln -s ../bytes deep/link && \
    printf '#!/bin/sh\\necho run\\n' >deep/run && chmod 755 deep/run && chmod 600 deep/part && \
    chmod 644 bytes deep/empty 'deep/deeper/a name with spaces' && cd ..";

/// Lists a tree in full: types, modes, links, contents.
const TELL_TREE: &str = "find tree | sort | while read -r f; do \
        if [ -L \"$f\" ]; then echo \"$f -> $(readlink \"$f\")\"; \
        else stat -c '%n %f' \"$f\"; fi; done; \
    find tree -type f | sort | while read -r f; do sha256sum \"$f\"; done; sh tree/deep/run";

#[test]
#[ignore = "needs the image"]
fn archives_go_both_ways() {
    let sandbox = start();
    let bytes = Numbers(9).bytes(300_000);
    let folder = tempfile::tempdir().expect("a folder");
    let host = |script: String, stdin: &[u8]| on_host(&["sh", "-c", &script], stdin, folder.path());
    let guest = |script: String, stdin: &[u8]| {
        let script = format!("rm -rf /tmp/t; mkdir /tmp/t; cd /tmp/t; umask 022; {script}");
        in_guest(&sandbox, &["sh", "-c", &script], stdin)
    };
    let listed = host(format!("umask 022; {MAKE_TREE} && {TELL_TREE}"), &bytes);
    assert_eq!(guest(format!("{MAKE_TREE} && {TELL_TREE}"), &bytes), listed);
    for (pack, unpack) in [
        ("tar -c", "tar -x"),
        ("tar -cz", "tar -xz"),
        ("tar -cj", "tar -xj"),
    ] {
        let packed = host(format!("{pack} -f - tree"), b"");
        assert_eq!(
            guest(format!("{unpack} -f - && {TELL_TREE}"), &packed),
            listed,
            "{pack} there"
        );
        let packed = guest(format!("{MAKE_TREE} && {pack} -f - tree"), &bytes);
        let back = host(
            format!("rm -rf tree && {unpack} -f - && {TELL_TREE}"),
            &packed,
        );
        assert_eq!(back, listed, "{pack} here");
    }
    let zipped = in_guest(&sandbox, &["gzip"], &bytes);
    assert!(on_host(&["gzip", "-d"], &zipped, folder.path()) == bytes);
    let zipped = on_host(&["gzip"], &bytes, folder.path());
    assert!(in_guest(&sandbox, &["gunzip"], &zipped) == bytes);
}
