//! Tokens in files: what is kept, who may read it, and changes by others.

use a99_server::{Authority, NewToken, Scopes, ServerCode, bearer};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/tokens.json");
    (folder, path)
}

fn new(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        scopes: Scopes::parse(&["read:*"]).unwrap(),
        lifetime: Some(Duration::from_secs(60)),
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn code_of(path: &Path) -> ServerCode {
    Authority::open(path).unwrap_err().code()
}

#[test]
fn the_file_is_private_and_has_no_secret() {
    let (_folder, path) = place();
    let authority = Authority::open(&path).unwrap();
    let (token, row) = authority.issue(&new("ci")).unwrap();
    let (id, secret) = token
        .strip_prefix("a99t_")
        .unwrap()
        .split_once('_')
        .unwrap();
    assert!(
        id == row.id && id.len() == 12 && secret.len() == 43,
        "{token}"
    );
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(id) && !text.contains(secret), "{text}");
    for shown in [format!("{row:?}"), format!("{authority:?}")] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let names: Vec<_> = path
        .parent()
        .unwrap()
        .read_dir()
        .unwrap()
        .flatten()
        .collect();
    // The file and its lock.
    assert_eq!(names.len(), 2, "{names:?}");
    // What a crash left does not stop the next change.
    fs::write(path.with_file_name(".tokens.json.partial"), "{").unwrap();
    authority.issue(&new("next")).unwrap();
    assert_eq!(Authority::open(&path).unwrap().list().unwrap().len(), 2);
}

#[test]
fn other_tokens_are_refused() {
    let (_folder, path) = place();
    let authority = Authority::open(&path).unwrap();
    let (token, row) = authority.issue(&new("a")).unwrap();
    let (other, _) = authority.issue(&new("b")).unwrap();
    let secret = |token: &str| token.splitn(3, '_').nth(2).unwrap().to_owned();
    let mixed = format!("a99t_{}_{}", row.id, secret(&other));
    let short = token[..token.len() - 1].to_owned();
    let upper = token.to_uppercase();
    for text in [
        "",
        "a99t_",
        "a99t__",
        "x",
        &mixed,
        &short,
        &upper,
        &format!("{token}="),
        &row.id,
    ] {
        let error = authority.check(text).unwrap_err();
        assert_eq!(error.code(), ServerCode::Unauthorized, "{text}");
        assert!(!error.to_string().contains(&*secret(&token)));
    }
    assert_eq!(authority.check(&token).unwrap().name, "a");
}

#[test]
fn tokens_expire() {
    let (_folder, path) = place();
    let authority = Authority::open(&path).unwrap();
    let short = NewToken {
        lifetime: Some(Duration::from_millis(200)),
        ..new("short")
    };
    let (token, _) = authority.issue(&short).unwrap();
    let grant = authority.check(&token).unwrap();
    assert!(authority.is_valid(&grant));
    std::thread::sleep(Duration::from_millis(250));
    assert!(!authority.is_valid(&grant));
    assert_eq!(
        authority.check(&token).unwrap_err().code(),
        ServerCode::TokenExpired
    );
    // Only who has the secret learns that.
    let guess = format!("{}x", &token[..token.len() - 1]);
    assert_eq!(
        authority.check(&guess).unwrap_err().code(),
        ServerCode::Unauthorized
    );
    let (token, row) = authority
        .issue(&NewToken {
            lifetime: None,
            ..new("ever")
        })
        .unwrap();
    assert_eq!(
        (row.expires, authority.check(&token).unwrap().expires),
        (None, None)
    );
}

#[test]
fn damaged_and_shared_files_are_errors() {
    let (_folder, path) = place();
    let authority = Authority::open(&path).unwrap();
    authority.issue(&new("a")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for bad in [
        String::new(),
        "{}".to_owned(),
        "[]".to_owned(),
        text[..text.len() / 2].to_owned(),
        text.replace("\"version\": 1", "\"version\": 2"),
        text.replace("read:*", "read:"),
        text.replace("\"hash\": \"", "\"hash\": \"A"),
        text.replace("\"name\"", "\"nick\""),
        text.replace("[\n        \"read:*\"\n      ]", "[]"),
    ] {
        assert_ne!(bad, text);
        fs::write(&path, &bad).unwrap();
        let error = Authority::open(&path).unwrap_err();
        assert_eq!(error.code(), ServerCode::BadTokensFile, "{bad}");
        assert!(error.to_string().contains("tokens.json") && !error.help().is_empty());
        // A change does not replace what it cannot read.
        assert_eq!(
            authority.issue(&new("b")).unwrap_err().code(),
            ServerCode::BadTokensFile
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
    fs::write(&path, &text).unwrap();
    for shared in [0o640, 0o604, 0o620, 0o644] {
        fs::set_permissions(&path, Permissions::from_mode(shared)).unwrap();
        let error = Authority::open(&path).unwrap_err();
        assert_eq!(error.code(), ServerCode::BadTokensFile, "{shared:o}");
        assert!(error.help().contains("chmod 600"), "{}", error.help());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(Authority::open(&path).unwrap().list().unwrap().len(), 1);
    let row = text
        .split_once("[\n")
        .unwrap()
        .1
        .rsplit_once("\n  ]")
        .unwrap()
        .0;
    fs::write(&path, text.replace(row, &format!("{row},{row}"))).unwrap();
    assert!(code_of(&path) == ServerCode::BadTokensFile, "an id twice");
    assert!(
        code_of(path.parent().unwrap()) == ServerCode::BadTokensFile,
        "a folder"
    );
}

#[test]
fn changes_at_the_same_time_lose_nothing() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..10 {
                    let authority = Authority::open(path).unwrap();
                    let (_, kept) = authority
                        .issue(&new(&format!("{thread}-{number}")))
                        .unwrap();
                    let (_, gone) = authority.issue(&new("gone")).unwrap();
                    authority.revoke(&gone.id).unwrap();
                    assert!(authority.list().unwrap().contains(&kept));
                }
            });
        }
    });
    let rows = Authority::open(&path).unwrap().list().unwrap();
    assert_eq!(rows.len(), 80);
    assert!(rows.iter().all(|row| row.name != "gone"));
}

#[tokio::test]
async fn a_server_learns_of_changes_within_a_second() {
    let (_folder, path) = place();
    let server = Authority::open(&path).unwrap();
    let watching = tokio::spawn(server.watch_file());
    let mut changed = server.changed();
    let command = Authority::open(&path).unwrap();
    let second = Duration::from_secs(1);
    let (token, row) = command.issue(&new("a")).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    let grant = server.check(&token).unwrap();
    command.revoke(&row.id).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    assert!(!server.is_valid(&grant));
    assert_eq!(
        server.check(&token).unwrap_err().code(),
        ServerCode::Unauthorized
    );
    let error = command.revoke(&row.id).unwrap_err();
    assert_eq!(error.code(), ServerCode::UnknownToken);

    // A file that becomes unusable allows nothing, until it is mended.
    let (token, _) = command.issue(&new("b")).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    let grant = server.check(&token).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    assert!(!server.is_valid(&grant));
    assert_eq!(
        server.check(&token).unwrap_err().code(),
        ServerCode::BadTokensFile
    );
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    assert!(server.is_valid(&grant));
    // So does a change of the scopes: who had more may not keep it.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("read:*", "read:general")).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    assert!(!server.is_valid(&grant) && server.check(&token).is_ok());
    fs::write(&path, text).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    assert!(server.is_valid(&grant));
    // A removed file revokes all.
    fs::remove_file(&path).unwrap();
    timeout(second, changed.changed()).await.unwrap().unwrap();
    assert!(!server.is_valid(&grant));
    watching.abort();
}

#[test]
fn a_bearer_is_one_header() {
    let of = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        bearer(&headers).map(str::to_owned)
    };
    for good in ["Bearer t", "bearer t", "BEARER  t "] {
        assert_eq!(of(&[good]).as_deref(), Some("t"), "{good}");
    }
    for bad in [
        &[][..],
        &["Basic t"],
        &["Bearer"],
        &["Bearer "],
        &["t"],
        &["Bearer t", "Bearer t"],
    ] {
        assert_eq!(of(bad), None, "{bad:?}");
    }
}
