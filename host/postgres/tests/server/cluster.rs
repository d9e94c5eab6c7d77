//! PostgreSQL servers that tests start.
//!
//! Each server has its own folder, and runs as the user `postgres` where the tests run as root.
//! A shell that waits for the end of this process, normal or not, stops the server and removes
//! the folder. Other crates include this file.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PASSWORD: &str = "swordfish";

pub(crate) struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    port: u16,
    /// User and group of the server, if they differ from this process.
    user: Option<(u32, u32)>,
    /// Its standard input closes with this process.
    _guard: Child,
}

fn said(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The folder of the server's programs.
fn bin() -> PathBuf {
    let asked = Command::new("pg_config").arg("--bindir").output();
    let asked = asked.map(|found| PathBuf::from(String::from_utf8_lossy(&found.stdout).trim()));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut found: Vec<PathBuf> = versions.map(|v| v.unwrap().path().join("bin")).collect();
    found.sort_by_key(|bin| {
        let version = bin.parent().and_then(Path::file_name).unwrap();
        version.to_string_lossy().parse().unwrap_or(0u32)
    });
    found.extend(asked);
    let found = found
        .into_iter()
        .rev()
        .find(|bin| bin.join("initdb").is_file());
    found.expect("these tests start a server of PostgreSQL: `apt-get install postgresql` has it")
}

impl Cluster {
    /// Starts a server with additional settings, which may write files beside its data.
    pub(crate) fn start(settings: impl FnOnce(&Cluster) -> String) -> Cluster {
        let bin = bin();
        let folder = tempfile::Builder::new()
            .prefix("a99-pg-")
            .tempdir()
            .unwrap()
            .keep();
        let id = |args: &[&str]| {
            let mut id = Command::new("id");
            id.args(args);
            said(id).parse::<u32>().unwrap()
        };
        let user = (id(&["-u"]) == 0).then(|| (id(&["-u", "postgres"]), id(&["-g", "postgres"])));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let stop = "trap '' INT TERM HUP; read _; \
                    pid=$(head -n 1 \"$0/data/postmaster.pid\") && kill -QUIT $pid; \
                    while [ -n \"$pid\" ] && kill -0 $pid; do sleep 0.1; done; \
                    until rm -rf \"$0\" || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done";
        let guard = Command::new("sh")
            .args(["-c", stop])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let cluster = Cluster {
            bin,
            folder,
            port,
            user,
            _guard: guard,
        };
        cluster.initialise(settings);
        cluster.run();
        cluster
    }

    /// A program of the server, as its user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.folder);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((uid, gid)) = self.user {
            chown(self.at(name), Some(uid), Some(gid)).unwrap();
        }
    }

    fn initialise(&self, more: impl FnOnce(&Cluster) -> String) {
        self.write("password", PASSWORD);
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(self.at("data"));
        initdb.arg("--pwfile").arg(self.at("password"));
        // A locale whose text order the store must not depend on.
        initdb.args([
            "-U",
            "admin",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]);
        said({
            initdb.arg("--no-sync");
            initdb
        });
        let folder = self.folder.display();
        let mut settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{folder}'\n\
             max_connections = 80\nshared_buffers = 32MB\nfsync = on\nlog_checkpoints = off\n",
            self.port
        );
        settings += &more(self);
        // Cheap authentication for the administrator: SCRAM without optimisation computes for a
        // tenth of a second.
        self.write(
            "data/pg_hba.conf",
            "local all admin password\nhost all admin 127.0.0.1/32 password\n\
             host all all 127.0.0.1/32 scram-sha-256\n",
        );
        let file = self.at("data/postgresql.conf");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text + &settings).unwrap();
    }

    /// Starts the server and waits until it answers.
    pub(crate) fn run(&self) {
        let started = Instant::now();
        loop {
            // After a kill its last processes may still hold its shared memory.
            let mut start = self.command("pg_ctl");
            start.arg("-D").arg(self.at("data"));
            start.arg("-l").arg(self.at("log"));
            let start = start.args(["-w", "-s", "start"]).stdin(Stdio::null());
            if start
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .success()
            {
                return;
            }
            let log = || fs::read_to_string(self.at("log")).unwrap_or_default();
            assert!(started.elapsed() < Duration::from_secs(60), "{}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Simulates a power cut: kills all processes at once.
    pub(crate) fn kill(&self) {
        let file = fs::read_to_string(self.at("data/postmaster.pid")).unwrap();
        let pid = file.lines().next().unwrap();
        let children = Command::new("pgrep").args(["-P", pid]).output();
        let children = children.map(|found| String::from_utf8_lossy(&found.stdout).into_owned());
        let mut kill = Command::new("kill");
        kill.arg("-9").arg(pid);
        for child in children.unwrap_or_default().split_whitespace() {
            kill.arg(child);
        }
        // Errors of processes that have already ended are ignored.
        drop(kill.stderr(Stdio::null()).status());
    }

    pub(crate) fn stop(&self) {
        let mut stop = self.command("pg_ctl");
        stop.arg("-D").arg(self.at("data"));
        stop.args(["-w", "-s", "-m", "fast", "stop"]);
        said(stop);
    }

    fn psql(&self, database: &str, sql: &str) -> Output {
        let mut psql = self.command("psql");
        psql.args([
            "-X",
            "-q",
            "-t",
            "-A",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "admin",
        ]);
        psql.arg("-h").arg(&self.folder);
        psql.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]);
        psql.env("PGPASSWORD", PASSWORD).stdin(Stdio::null());
        psql.output().unwrap()
    }

    /// A separate database for a test.
    pub(crate) fn database(&'static self) -> Database {
        self.database_on("pg_default")
    }

    /// A separate database in a tablespace.
    pub(crate) fn database_on(&'static self, tablespace: &str) -> Database {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let database = Database {
            cluster: self,
            name,
        };
        let made = self.psql(
            "postgres",
            &format!("CREATE DATABASE {} TABLESPACE {tablespace}", database.name),
        );
        assert!(made.status.success(), "{made:?}");
        database
    }
}

#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) cluster: &'static Cluster,
    pub(crate) name: String,
}

impl Database {
    pub(crate) fn url(&self) -> String {
        self.url_of("admin", PASSWORD, "127.0.0.1", "sslmode=disable")
    }

    pub(crate) fn url_of(&self, user: &str, password: &str, host: &str, more: &str) -> String {
        let (port, name) = (self.cluster.port, &self.name);
        format!("postgres://{user}:{password}@{host}:{port}/{name}?{more}")
    }

    /// The URL with TLS.
    pub(crate) fn url_with(&self, host: &str, more: &str) -> String {
        self.url_of("admin", PASSWORD, host, more)
    }

    /// The URL of the socket in the server's folder.
    pub(crate) fn url_of_socket(&self) -> String {
        let folder = self.cluster.folder.to_string_lossy().replace('/', "%2F");
        self.url_of("admin", PASSWORD, &folder, "")
    }

    /// Runs SQL about the database from another one.
    pub(crate) fn alter(&self, sql: &str) {
        let output = self
            .cluster
            .psql("postgres", &format!("ALTER DATABASE {} {sql}", self.name));
        assert!(output.status.success(), "{sql}: {output:?}");
    }

    /// The output of the administrator's SQL, a row a line.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let output = self.cluster.psql(&self.name, sql);
        assert!(output.status.success(), "{sql}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}
