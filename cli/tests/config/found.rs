//! Found configuration files and misplaced secrets: settings that a found file may not change, and
//! text that no message shows.

use super::{NOTHING, a99, folder, row, write};
use std::fs;

/// A found file cannot decide which server gets the user's key.
#[test]
fn d10_authorities_of_a_found_file_do_not_count() {
    let folder = folder();
    let text = "ca = \"theirs.pem\"\nallow = \"net:a.example\"\n";
    write(folder.path(), text);
    let done = a99(folder.path(), &["config", "agent.json", "--json"]);
    assert_eq!(row(&done, "ca")["from"], "default", "{done:?}");
    assert_eq!(row(&done, "allow")["from"], "file");
    let told = done.json()["warnings"][0].to_string();
    assert!(told.contains("`ca` of agent99.toml is not taken"), "{told}");
    let named = ["config", "--config", "agent99.toml", "--json"];
    let named = a99(folder.path(), &named);
    assert_eq!(row(&named, "ca")["from"], "file");
    let option = ["config", "agent.json", "--ca", "mine.pem", "--json"];
    let option = a99(folder.path(), &option);
    assert_eq!(row(&option, "ca")["values"][0], "mine.pem");
}

#[cfg(unix)]
#[test]
fn d10_a_link_and_an_open_folder_are_not_trusted() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("made");
    fs::write(inner.join("agent.json"), NOTHING).expect("written");
    write(folder.path(), "fuel = 55\n");
    let elsewhere = folder.path().join("elsewhere.toml");
    fs::write(&elsewhere, "fuel = 77\n").expect("written");
    let link = inner.join("agent99.toml");
    std::os::unix::fs::symlink(&elsewhere, &link).expect("a link");
    let fuel = |why: &str| {
        let done = a99(&inner, &["config", "agent.json", "--json"]);
        // The search continued in the parent folder.
        assert_eq!(row(&done, "fuel")["values"][0], "55", "{done:?}");
        let told = done.json()["warnings"][0].to_string();
        assert!(told.contains(why) && told.contains("--config"), "{told}");
    };
    fuel("it is a link");
    fs::remove_file(&link).expect("removed");
    fs::write(&link, "fuel = 77\n").expect("written");
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).expect("changed");
    fuel("others may write to its folder");
    // As in /tmp: the sticky bit protects the file, but a second hard link may be another user's.
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o1777)).expect("changed");
    let done = a99(&inner, &["config", "agent.json", "--json"]);
    assert_eq!(row(&done, "fuel")["values"][0], "77");
    fs::hard_link(&link, folder.path().join("second")).expect("a link");
    fuel("others may write to its folder");
}

#[cfg(all(feature = "embed", feature = "models"))]
#[test]
fn d10_warnings_say_what_happens() {
    let folder = folder();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, "").expect("written");
    let warnings = |args: &[&str]| {
        let all = [&["config", "--no-config", "--json"], args].concat();
        let done = a99(folder.path(), &all);
        done.json()["warnings"].to_string()
    };
    let header = [
        "--header",
        "https://a.example authorization=Bearer {env:PATH}",
    ];
    for of in [["--ca", "ca.pem"], header] {
        let name = format!("`{}` has no effect", &of[0][2..]);
        assert!(warnings(&of).contains(&name), "{of:?}");
        for grant in [
            &["--allow", "net:a.example"][..],
            &["--llm", "https://a.example/v1", "--model", "m"],
            &["--embed", "https://a.example/v1", "--embed-model", "m"],
        ] {
            let told = warnings(&[&of[..], grant].concat());
            assert_eq!(told, "[]", "{of:?} {grant:?}");
        }
    }
    // The run's messages about headers match the headers that it sends.
    for (llm, is_sent) in [
        ("https://a.example/v1", true),
        ("https://A.example:443/v1", true),
        ("https://a.example.com/v1", false),
        ("https://a.example:444/v1", false),
    ] {
        let args = [
            &["run", "agent.json", "--llm", llm, "--model", "m"],
            &header[..],
        ]
        .concat();
        let done = a99(folder.path(), &args);
        assert_eq!(
            done.err.contains("is never sent"),
            !is_sent,
            "{llm} {done:?}"
        );
    }
    for (allow, is_sent) in [("net:a.example:443", true), ("net:a.example:8443", false)] {
        let args = [&["run", "agent.json", "--allow", allow], &header[..]].concat();
        let done = a99(folder.path(), &args);
        assert_eq!(
            done.err.contains("is never sent"),
            !is_sent,
            "{allow} {done:?}"
        );
    }
}

#[cfg(feature = "http")]
#[test]
fn d10_json_has_what_a_file_granted() {
    let folder = folder();
    write(folder.path(), "allow = \"net:a.example\"\nfuel = 77\n");
    let done = a99(folder.path(), &["run", "agent.json", "--json"]);
    let granted = &done.json()["granted_by_file"];
    let expected = serde_json::json!({"file": "agent99.toml", "allow": "net:a.example"});
    assert_eq!(*granted, expected, "{done:?}");
    let done = a99(
        folder.path(),
        &["run", "agent.json", "--json", "--no-config"],
    );
    assert!(done.json().get("granted_by_file").is_none(), "{done:?}");
}

/// A misplaced secret appears in no message, table or JSON.
#[test]
fn d13_secrets_in_wrong_places_are_not_echoed() {
    const SECRET: &str = "gsk0aB9zK3LmN8pQr5St";
    let folder = folder();
    let login = format!("https://user:{SECRET}@a.example/v1");
    let token = format!("https://{SECRET}@a.example/v1");
    let query = format!("http://127.0.0.1:1/v1?key={SECRET}");
    let database = format!("postgres://user:{SECRET}@127.0.0.1:1/a?password={SECRET}");
    let mut settings = vec![
        ("env", SECRET.to_owned()),
        ("env", format!("KEY={SECRET}")),
        ("header", SECRET.to_owned()),
        ("header", format!("https://a.example x={SECRET}")),
        ("header", format!("https://a.example x={{env:{SECRET}}}")),
        (
            "header",
            format!("https://u:{SECRET}@a.example x={{env:PATH}}"),
        ),
        ("llm-key-env", SECRET.to_owned()),
        ("llm-key-env", format!("sk-{SECRET}")),
        ("store", database.clone()),
        ("store", format!("mysql://u:{SECRET}@a.example/x")),
        ("allow", format!("net:u:{SECRET}@a.example")),
        ("allow", token.clone()),
    ];
    for url in [&login, &token, &query] {
        settings.push(("llm", url.clone()));
        settings.push(("embed", url.clone()));
    }
    let more = [
        "--model",
        "m",
        "--embed-model",
        "m",
        "--llm",
        "http://127.0.0.1:1/v1",
        "--timeout",
        "2s",
    ];
    let silent = |args: &[&str]| {
        let done = a99(folder.path(), args);
        let said = format!("{}{}", done.out, done.err);
        assert!(!said.contains(SECRET), "{args:?}: {said}");
    };
    for (name, value) in &settings {
        let list = matches!(*name, "env" | "header" | "allow");
        let value_toml = if list {
            format!("[{value:?}]")
        } else {
            format!("{value:?}")
        };
        let option = format!("--{name}={value}");
        let rest = match *name {
            "llm" => &more[..4],
            _ => &more[..],
        };
        for command in [
            &["run", "agent.json"][..],
            &["run", "agent.json", "--json"],
            &["config", "agent.json"],
            &["config", "agent.json", "--json"],
            &["doctor"],
        ] {
            write(folder.path(), "");
            silent(&[command, &[&option], rest].concat());
            // Named and found, beside an option of the same kind or alone.
            write(
                folder.path(),
                &format!("{name} = {value_toml}\nmodel = \"m\"\n"),
            );
            silent(&[command, &["--config", "agent99.toml"]].concat());
            silent(command);
        }
    }
    for text in [
        format!("[models.services.a]\nwire = \"openai\"\nurl = \"{login}\"\n"),
        format!(
            "[models.services.a]\nwire = \"openai\"\nurl = \"{query}\"\n[models.roles]\ndefault = \"a/m\"\n"
        ),
        format!(
            "[models.services.a]\nurl = \"http://127.0.0.1:1\"\nkey-env = \"{SECRET}\"\n[models.roles]\ndefault = [\"a/m\"]\n"
        ),
        format!("[models.services.a]\nurl = \"http://127.0.0.1:1\"\nkey = \"{SECRET}\"\n"),
        format!("api-key = \"{SECRET}\"\n"),
        format!("llm-key-env = {{ key = \"{SECRET}\" }}\n"),
        format!("llm-key-env = \"{SECRET}\nfuel = 5\n"),
        format!("llm-key-env = {SECRET}\n"),
        format!("header = \"{SECRET}\n"),
        format!("store = [\"a\", {SECRET}]\n"),
    ] {
        write(folder.path(), &text);
        for command in [
            &["run", "agent.json"][..],
            &["run", "agent.json", "--json"],
            &["config", "agent.json", "--json"],
            &["doctor"],
        ] {
            silent(&[command, &["--config", "agent99.toml"]].concat());
            silent(command);
        }
    }
}
