//! Class S5: the host's git runs no file that a guest writes into a mount, and the guest
//! may write all files that git writes when it works in a repository.

use super::client::{Client, RDONLY, RDWR, TRUNC, WRONLY};
use a99_sandbox_p9::{GitWrites, Mount, MountMode, Options, Server};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of the host without a git repository.
struct GitFixture {
    folder: tempfile::TempDir,
    client: Client,
}

impl GitFixture {
    fn new(git: GitWrites) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("rw")).expect("made");
        let mount = Mount {
            git,
            ..Mount::new("/w", folder.path().join("rw"), MountMode::ReadWrite)
        };
        let server = Server::new(vec![mount], Options::default()).expect("shared");
        let client = Client::new(server);
        Self { folder, client }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("rw").join(path)
    }

    /// A file that a program run by git would leave behind.
    fn mark(&self) -> PathBuf {
        self.folder.path().join("mark")
    }

    /// Runs the host's git in a folder; returns whether it succeeded.
    fn git(&self, at: &str, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.current_dir(self.path(at)).args(args);
        git.env("HOME", self.folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_EDITOR", "true")
            .env("GIT_CEILING_DIRECTORIES", self.folder.path())
            .env_remove("GIT_DIR");
        for (name, value) in [("NAME", "a"), ("EMAIL", "a@example.com")] {
            git.env(format!("GIT_AUTHOR_{name}"), value);
            git.env(format!("GIT_COMMITTER_{name}"), value);
        }
        git.output().expect("git runs").status.success()
    }

    fn repository(&self, at: &str) {
        fs::create_dir_all(self.path(at)).expect("made");
        assert!(self.git(at, &["init", "-q", "-b", "main"]));
        fs::write(self.path(at).join("file"), "1\n").expect("written");
        assert!(self.git(at, &["add", "."]) && self.git(at, &["commit", "-qm", "1"]));
    }

    /// Writes a file, replacing an existing one.
    fn put(&mut self, folder: &str, name: &str, text: &str) -> Result<(), Errno> {
        let folder = format!("0/{folder}");
        let fid = match self.client.create(&folder, name, RDWR | TRUNC, 0o755) {
            Err(Errno::EXIST) => self
                .client
                .open(&format!("{folder}/{name}"), WRONLY | TRUNC)?,
            created => created?,
        };
        self.client.write(fid, 0, text.as_bytes())?;
        self.client.clunk(fid)
    }

    /// Runs the host's git wherever it could be tricked.
    #[track_caller]
    fn host_works(&self, places: &[&str]) {
        for at in places.iter().filter(|at| self.path(at).is_dir()) {
            for args in [
                &["status"][..],
                &["log", "-p"],
                &["diff"],
                &["diff", "HEAD"],
                &["add", "-A"],
                &["commit", "-qm", "host"],
                &["rebase", "--continue"],
                &["am", "--continue"],
                &["cherry-pick", "--continue"],
                &["checkout", "-qb", "other"],
                &["stash"],
                &["fetch", "origin"],
                &["gc", "--auto"],
                &["submodule", "status"],
            ] {
                self.git(at, args);
                assert!(!self.mark().exists(), "git {args:?} in {at}");
            }
        }
    }

    fn settings(&self) -> String {
        let mark = self.mark().display().to_string();
        format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\
             \tfsmonitor = \"touch {mark}; false\"\n\thooksPath = .\n\
             \tsshCommand = \"touch {mark}; false\"\n\tpager = \"touch {mark}; cat\"\n\
             [diff]\n\texternal = \"touch {mark}; false\"\n\
             [filter \"x\"]\n\tclean = \"touch {mark}; cat\"\n"
        )
    }
}

#[test]
fn s5_the_hosts_git_runs_nothing_that_a_guest_wrote() {
    let mut g = GitFixture::new(GitWrites::Refused);
    g.repository("repo");
    g.repository("repo2");
    let settings = g.settings();
    let program = format!("#!/bin/sh\ntouch {}\n", g.mark().display());
    let todo = format!("exec touch {}\n", g.mark().display());
    let head = fs::read_to_string(g.path("repo/.git/refs/heads/main")).expect("a branch");
    for (folder, name, text) in [
        ("repo/.git", "config", settings.as_str()),
        ("repo/.git", "config.worktree", &settings),
        ("repo/.git", "commondir", "../../evil"),
        ("repo/.git/hooks", "pre-commit", &program),
        ("repo/.git/hooks", "post-index-change", &program),
        ("repo/.git/info", "attributes", "* filter=x diff=x\n"),
        ("repo/.git/objects/info", "alternates", "../../../evil"),
    ] {
        assert_eq!(
            g.put(folder, name, text),
            Err(Errno::PERM),
            "{folder}/{name}"
        );
    }
    for folder in [
        "rebase-merge",
        "rebase-apply",
        "sequencer",
        "hooks2",
        "modules",
    ] {
        let made = g.client.mkdir("0/repo/.git", folder, 0o755);
        assert_eq!(made, Err(Errno::PERM), "{folder}");
    }
    // Written elsewhere and moved there, as a file and as a folder.
    g.client.mkdir("0", "state", 0o755).expect("made");
    for (name, text) in [
        ("git-rebase-todo", todo.as_str()),
        ("head-name", "refs/heads/main"),
        ("onto", &head),
        ("orig-head", &head),
        ("interactive", ""),
        ("done", ""),
        ("end", "1"),
        ("msgnum", "1"),
    ] {
        g.put("state", name, text).expect("an ordinary file");
    }
    let moved = g
        .client
        .rename(("0", "state"), ("0/repo/.git", "rebase-merge"));
    assert_eq!(moved, Err(Errno::PERM));
    g.put("", "evil", &settings).expect("an ordinary file");
    for name in ["config", "config.lock", "CONFIG", "gitdir"] {
        let moved = g.client.rename(("0", "evil"), ("0/repo/.git", name));
        assert_eq!(moved, Err(Errno::PERM), "{name}");
        let linked = g.client.link("0/evil", "0/repo/.git", name);
        assert_eq!(linked, Err(Errno::PERM), "{name}");
    }
    // Another git directory that replaces the existing one.
    for name in [".git", ".GIT", "git~1", ".git "] {
        for folder in ["0", "0/state", "0/repo2"] {
            assert_eq!(g.client.mkdir(folder, name, 0o755), Err(Errno::PERM));
            assert_eq!(g.client.symlink(folder, name, "state"), Err(Errno::PERM));
            let put = g.client.create(folder, name, RDWR, 0o644).map(drop);
            assert_eq!(put, Err(Errno::PERM), "{name}");
            let moved = g.client.rename(("0", "state"), (folder, name));
            assert_eq!(moved, Err(Errno::PERM), "{name}");
        }
    }
    // Allowed writes are harmless too.
    g.put("repo/.git", "MERGE_MSG", "x").expect("data");
    g.put("repo", ".gitattributes", "* filter=x diff=x merge=x\n")
        .expect("an ordinary file");
    let modules = "[submodule \"m\"]\n\tpath = state\n\turl = ext::sh\n\tupdate = !touch x\n";
    g.put("repo", ".gitmodules", modules)
        .expect("an ordinary file");
    g.put("repo", "file", "2\n").expect("an ordinary file");
    g.host_works(&["repo", "repo2", "state", ""]);
    let refused = g.client.server.git_refusals();
    assert_eq!(
        refused.get().map(PathBuf::as_path),
        Some(Path::new("/w/repo/.git/config"))
    );
}

/// Parts of a bare repository, in every order, made and moved into place.
#[test]
fn s5_no_order_of_steps_makes_a_bare_repository() {
    let parts = ["HEAD", "objects", "refs"];
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (number, order) in orders.into_iter().enumerate() {
        for way in ["make", "move", "link"] {
            let mut g = GitFixture::new(GitWrites::Refused);
            g.repository("repo");
            let settings = g.settings();
            let folder = format!("x{number}");
            g.client.mkdir("0", &folder, 0o755).expect("made");
            g.client.mkdir("0", "aside", 0o755).expect("made");
            g.put(&folder, "config", &settings)
                .expect("an ordinary file");
            let mut results = Vec::new();
            for part in order.map(|part| parts[part]) {
                let place = format!("0/{folder}");
                let made = match (part, way) {
                    ("HEAD", "make") => g.put(&folder, part, "ref: refs/heads/main\n"),
                    ("HEAD", _) => g
                        .put("aside", "h", "ref: refs/heads/main\n")
                        .and_then(|()| match way {
                            "move" => g.client.rename(("0/aside", "h"), (&place, part)),
                            _ => g.client.link("0/aside/h", &place, part),
                        }),
                    (_, "make") => g.client.mkdir(&place, part, 0o755),
                    (_, "move") => g
                        .client
                        .mkdir("0/aside", part, 0o755)
                        .and_then(|()| g.client.rename(("0/aside", part), (&place, part))),
                    _ => g
                        .client
                        .symlink(&place, part, &format!("../repo/.git/{part}")),
                };
                results.push(made);
            }
            let expected = [Ok(()), Ok(()), Err(Errno::PERM)];
            assert_eq!(results, expected, "{order:?} {way}");
            g.host_works(&[&folder]);
        }
    }
}

/// The same where `HEAD` and a way to the rest suffice, and deep inside a git directory,
/// where names are unrestricted.
#[test]
fn s5_no_repository_stands_where_names_are_free() {
    let mut g = GitFixture::new(GitWrites::Refused);
    g.repository("repo");
    let settings = g.settings();
    g.client.mkdir("0", "x", 0o755).expect("made");
    g.put("x", "HEAD", "ref: refs/heads/main\n")
        .expect("an ordinary file");
    assert_eq!(g.put("x", "commondir", "../y"), Err(Errno::PERM));
    for folder in [
        "repo/.git/refs/heads",
        "repo/.git/logs",
        "repo/.git/objects/pack",
    ] {
        let place = format!("0/{folder}");
        g.client
            .mkdir(&place, "d", 0o755)
            .expect("a name of a branch");
        let inner = format!("{folder}/d");
        g.put(&inner, "config", &settings)
            .expect("a name of a branch");
        g.put(&inner, "HEAD", "ref: refs/heads/main\n")
            .expect("a name of a branch");
        g.client
            .mkdir(&format!("0/{inner}"), "refs", 0o755)
            .expect("a name of a branch");
        let made = g.client.mkdir(&format!("0/{inner}"), "objects", 0o755);
        assert_eq!(made, Err(Errno::PERM), "{folder}");
    }
    g.host_works(&["x", "repo/.git/refs/heads/d", "repo/.git/logs/d", "repo"]);
}

#[test]
fn s5_a_bare_repository_of_the_host_keeps_its_settings() {
    let mut g = GitFixture::new(GitWrites::Refused);
    assert!(g.git("", &["init", "-q", "--bare", "store"]));
    let settings = g.settings();
    for name in ["config", "config.worktree", "commondir"] {
        assert_eq!(g.put("store", name, &settings), Err(Errno::PERM), "{name}");
    }
    assert_eq!(g.put("store/hooks", "post-update", "x"), Err(Errno::PERM));
    let moved = g.client.rename(("0/store", "hooks"), ("0", "hooks"));
    assert_eq!(moved, Err(Errno::PERM));
    assert_eq!(g.put("store/refs/heads", "b", "x"), Ok(()));
    assert!(g.client.open("0/store/config", RDONLY).is_ok());
    // A user can opt in to more.
    let mut g = GitFixture::new(GitWrites::Allowed);
    assert_eq!(g.client.mkdir("0", ".git", 0o755), Ok(()));
    assert_eq!(g.put(".git", "config", &settings), Ok(()));
    assert!(g.client.server.git_refusals().get().is_none());
    // Then git does run it, which shows that the other tests would detect it.
    g.repository("repo");
    assert_eq!(g.put("repo/.git", "config", &g.settings()), Ok(()));
    g.git("repo", &["status"]);
    assert!(g.mark().exists());
}

/// All paths below a folder with their times.
fn files(folder: &Path) -> BTreeSet<(PathBuf, std::time::SystemTime)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("a folder").flatten() {
            let path = entry.path();
            match entry.file_type().expect("a kind").is_dir() {
                true => folders.push(path),
                false => {
                    let time = entry.metadata().and_then(|meta| meta.modified());
                    found.insert((path, time.expect("a time")));
                }
            }
        }
    }
    found
}

/// A guest may write the files below `.git` that git writes in usual work.
#[test]
fn s5_usual_work_with_git_is_allowed() {
    let mut g = GitFixture::new(GitWrites::Refused);
    g.repository("repo");
    let before = files(&g.path("repo/.git"));
    let edit = |g: &GitFixture, file: &str, text: &str| {
        fs::write(g.path("repo").join(file), text).expect("written");
    };
    let works = |g: &GitFixture, args: &[&str]| assert!(g.git("repo", args), "{args:?}");
    edit(&g, "new", "x\n");
    works(&g, &["status"]);
    works(&g, &["add", "-A"]);
    works(&g, &["commit", "-qm", "2"]);
    works(&g, &["branch", "topic"]);
    works(&g, &["tag", "-a", "v1", "-m", "v1"]);
    edit(&g, "file", "stashed\n");
    works(&g, &["stash"]);
    works(&g, &["stash", "pop"]);
    works(&g, &["commit", "-qam", "3"]);
    works(&g, &["checkout", "-q", "topic"]);
    edit(&g, "file", "other\n");
    works(&g, &["commit", "-qam", "4"]);
    assert!(!g.git("repo", &["merge", "main"]), "a conflict");
    edit(&g, "file", "merged\n");
    works(&g, &["add", "file"]);
    works(&g, &["commit", "-qm", "merged"]);
    works(&g, &["pack-refs", "--all"]);
    works(&g, &["gc", "-q"]);
    let after = files(&g.path("repo/.git"));
    let written: Vec<_> = after.difference(&before).map(|(path, _)| path).collect();
    assert!(written.len() > 8, "{written:?}");
    for path in written {
        let below = path.strip_prefix(g.path("")).expect("below");
        let (folder, name) = (below.parent().expect("a folder"), below.file_name());
        let folder = format!("0/{}", folder.display());
        let name = name.and_then(|name| name.to_str()).expect("a name");
        let lock = format!("{name}.lock");
        // As git does: to a temporary name, and then renamed.
        if !folder.contains("objects") {
            let fid = g.client.create(&folder, &lock, RDWR, 0o644).expect(&lock);
            g.client.clunk(fid).expect("closed");
            let moved = g.client.rename((&folder, &lock), (&folder, name));
            assert_eq!(moved, Ok(()), "{}", below.display());
        }
        assert_eq!(
            g.client.unlink(&folder, name, 0),
            Ok(()),
            "{}",
            below.display()
        );
        assert!(g.client.create(&folder, name, RDWR, 0o644).is_ok());
    }
}

/// Guests with separate servers on one folder make the parts of a git directory at the same
/// moment: one of them is refused.
#[test]
fn s3_two_guests_complete_no_repository_together() {
    use std::sync::Barrier;
    let folder = tempfile::tempdir().expect("a folder");
    let client = || {
        let mount = Mount::new("/w", folder.path(), MountMode::ReadWrite);
        Client::new(Server::new(vec![mount], Options::default()).expect("shared"))
    };
    let mut clients = [client(), client()];
    for round in 0..300 {
        let dir = format!("d{round}");
        let path = folder.path().join(&dir);
        fs::create_dir(&path).expect("made");
        fs::create_dir(path.join("objects")).expect("made");
        let start = Barrier::new(2);
        let at = format!("0/{dir}");
        let [first, second] = &mut clients;
        let (head, refs) = std::thread::scope(|scope| {
            let head = scope.spawn(|| {
                start.wait();
                first.create(&at, "HEAD", RDWR, 0o644).map(drop)
            });
            start.wait();
            let refs = second.mkdir(&at, "refs", 0o755);
            (head.join().expect("a result"), refs)
        });
        let refused = [head, refs].map(|made| made == Err(Errno::PERM));
        assert_eq!(
            refused.iter().filter(|refused| **refused).count(),
            1,
            "{head:?} {refs:?}"
        );
    }
    // Waiting for a held folder lock is limited.
    let path = folder.path().join("held");
    fs::create_dir(&path).expect("made");
    let held = fs::File::open(&path).expect("open");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("held");
    let [first, _] = &mut clients;
    assert_eq!(first.mkdir("0/held", "refs", 0o755), Err(Errno::BUSY));
    assert_eq!(first.mkdir("0/held", "other", 0o755), Ok(()));
    drop(held);
    assert_eq!(first.mkdir("0/held", "refs", 0o755), Ok(()));
}

#[test]
fn s3_what_the_hosts_configuration_leads_to_is_not_written() {
    let mut g = GitFixture::new(GitWrites::Refused);
    g.repository("repo");
    let mark = g.mark().display().to_string();
    let program = format!("#!/bin/sh\ntouch {mark}\ncat\n");
    for (name, value) in [
        ("core.hooksPath", ".husky/_"),
        ("include.path", "../.gitconfig"),
        ("core.fsmonitor", "tools/fsmonitor"),
        ("core.sshCommand", "sh tools/ssh.sh"),
        ("filter.x.clean", "sh clean.sh"),
        ("remote.origin.url", "git@example.invalid:x"),
    ] {
        assert!(g.git("repo", &["config", name, value]), "{name}");
    }
    fs::create_dir(g.path("repo/tools")).expect("made");
    fs::create_dir_all(g.path("repo/.husky/_")).expect("made");
    fs::write(g.path("repo/.gitattributes"), "*.txt filter=x\n").expect("written");
    let settings = g.settings();
    for (folder, name, text) in [
        ("repo/.husky/_", "pre-commit", program.as_str()),
        ("repo/.husky", "pre-commit", &program),
        ("repo", ".gitconfig", &settings),
        ("repo/tools", "fsmonitor", &program),
        ("repo/tools", "ssh.sh", &program),
        ("repo", "clean.sh", &program),
    ] {
        assert_eq!(
            g.put(folder, name, text),
            Err(Errno::PERM),
            "{folder}/{name}"
        );
    }
    // Neither created elsewhere and moved there, nor through a link or another folder.
    g.client.mkdir("0/repo", "new", 0o755).expect("made");
    g.put("repo/new", "fsmonitor", &program).expect("written");
    let perm = Err(Errno::PERM);
    assert_eq!(
        g.client
            .rename(("0/repo/new", "fsmonitor"), ("0/repo/tools", "fsmonitor")),
        perm
    );
    assert_eq!(
        g.client.rename(("0/repo", "tools"), ("0/repo", "old")),
        perm
    );
    assert_eq!(
        g.client
            .link("0/repo/new/fsmonitor", "0/repo/tools", "fsmonitor"),
        perm
    );
    fs::remove_dir(g.path("repo/tools")).expect("removed");
    assert_eq!(g.client.symlink("0/repo", "tools", "new"), perm);
    assert_eq!(
        g.client.rename(("0/repo", "new"), ("0/repo", "tools")),
        perm
    );
    // The guest may write all other files.
    g.put("repo", "a.txt", "text\n").expect("written");
    g.put("repo/new", "b.txt", "text\n").expect("written");
    assert_eq!(g.client.mkdir("0/repo", "tools", 0o755), Ok(()));
    g.put("repo/tools", "other", "text\n").expect("written");
    g.host_works(&["repo"]);
    // A user who trusts the guest can allow it.
    let mut g = GitFixture::new(GitWrites::Allowed);
    g.repository("repo");
    assert!(g.git("repo", &["config", "core.hooksPath", "hooks"]));
    g.client.mkdir("0/repo", "hooks", 0o755).expect("made");
    g.put("repo/hooks", "pre-commit", "true\n")
        .expect("written");
}
