//! The guest's Python gives the same results as the host's `python3`.

use super::support::{in_guest, on_host};
use crate::common::start;
use std::path::Path;

/// Uses json, ssl, sqlite3, hashlib, decimal, threads, processes, floats.
const SCRIPT: &str = include_str!("script.py");

#[test]
#[ignore = "needs the image"]
fn python_prints_what_the_hosts_python_prints() {
    let theirs = on_host(&["python3", "-c", SCRIPT], b"", Path::new("/"));
    let ours = in_guest(&start(), &["python3", "-c", SCRIPT], b"");
    let (theirs, ours) = (String::from_utf8(theirs), String::from_utf8(ours));
    let (theirs, ours) = (theirs.expect("text"), ours.expect("text"));
    assert!(theirs.lines().count() > 60, "{theirs}");
    for (our, their) in ours.lines().zip(theirs.lines()) {
        assert_eq!(our, their);
    }
    assert_eq!(ours, theirs);
}
