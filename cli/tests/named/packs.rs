//! Packs on the command line: names, builds, the list, and copies of sandboxes with packs.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::*;
use serde_json::Value as Json;
use std::process::Output;

/// The message and the help of a failed command.
fn said(output: &Output) -> String {
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    let text = |member: &str| {
        report["error"][member]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    format!("{}: {}", text("message"), text("help"))
}

#[test]
fn an_unknown_pack_is_answered_by_the_known_ones() {
    let home = Home::new("packs");
    for (pack, expected) in [("tool", "`tools`"), ("xyz", "build, node, py, tools")] {
        for args in [
            &["exec", "--json", "--pack", pack, "--", "true"][..],
            &["start", "box", "--json", "--pack", pack],
            &["build", "--json", "--pack", "py", "--pack", pack],
        ] {
            let output = home.run(args);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
            let said = said(&output);
            assert!(said.contains(expected), "{args:?}: {said}");
        }
    }
    for args in [
        &["build", "--pack", "py", "--with", "hello"][..],
        &["build", "--as", "mine"],
        &["exec", "--pack", "py", "--image", "alpine", "--", "true"],
        &["exec", "box", "--pack", "py", "--", "true"],
    ] {
        home.fails(args, 2);
    }
    for (packages, name) in [("hello", "py"), ("hello", "../x"), ("a b", "mine")] {
        let code = home.fails(&["build", "--json", "--with", packages, "--as", name], 125);
        assert_eq!(code, "image.unexpected_package", "{packages} {name}");
    }
}

#[test]
#[ignore = "needs the image, builds a pack"]
fn a_pack_is_built_listed_used_and_copied() {
    let home = Home::new("built");
    let text = home.ok(&["build", "--json", "--with", "hello", "--as", "hello"]);
    let built: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(built["packs"][0]["packages"][0]["package"], "hello");
    let text = home.ok(&["image", "ls", "--json"]);
    let list: Json = serde_json::from_str(&text).unwrap();
    let packs = list["packs"].as_array().unwrap();
    assert!(packs.contains(&built["packs"][0]), "{list}");
    assert!(home.ok(&["image", "ls"]).contains("hello, 1 packages"));
    // In another cache, with neither packages nor Debian's tools.
    let file = home.0.join("hello.tar.gz");
    let file = file.to_str().unwrap();
    home.ok(&["image", "export", "--pack", "hello", file]);
    let elsewhere = |args: &[&str]| {
        let mut command = home.command(args);
        let output = command.env("A99_CACHE_DIR", home.0.join("cache")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice::<Json>(&output.stdout).unwrap()
    };
    let carried = elsewhere(&["image", "import", "--json", file]);
    assert_eq!(carried["pack"]["sha256"], built["packs"][0]["sha256"]);
    assert_eq!(
        elsewhere(&["image", "ls", "--json"])["packs"],
        built["packs"]
    );
    let hello = "Hello, world!\n";
    assert_eq!(home.ok(&["exec", "--pack", "hello", "--", "hello"]), hello);
    home.ok(&["start", "box", "--pack", "hello", "--pack", "tools"]);
    assert_eq!(home.ls()["sandboxes"][0]["packs"][1], "tools");
    let file = home.0.join("box.snapshot");
    home.ok(&["snapshot", "box", file.to_str().unwrap()]);
    home.ok(&["fork", "box", "copy"]);
    home.ok(&["start", "again", "--from", file.to_str().unwrap()]);
    for name in ["box", "copy", "again"] {
        let script = "hello && rg --version";
        let said = home.ok(&["exec", name, "--", "sh", "-c", script]);
        assert!(
            said.starts_with(&format!("{hello}ripgrep")),
            "{name}: {said}"
        );
    }
    let text = home.ok(&["image", "rm", "--json", "--pack", "hello"]);
    let removed: Json = serde_json::from_str(&text).unwrap();
    assert!(removed["bytes"].as_u64().unwrap() > 4096, "{removed}");
    assert!(!home.ok(&["image", "ls"]).contains("hello, 1 packages"));
    let said = home.ok(&["exec", "box", "--", "hello"]);
    assert_eq!(said, hello, "what runs keeps its file");
}
