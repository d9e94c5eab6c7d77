//! Specification of a named sandbox. `start` passes it to the daemon over a pipe, because variables
//! may be secrets and every user can read a process's arguments.

use super::args::NamedArgs;
use super::name::Name;
use crate::sandbox_args::{DiskArg, GuestJitArg, SettingsArgs};
use crate::sandbox_limits::LimitsArgs;
use a99_sandbox::p9::{Budget, GitWrites};
use a99_sandbox::{Mount, MountMode, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// A port of the host that is forwarded to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Publish {
    /// Listening address of the host; port 0 picks a free one.
    pub listen: SocketAddr,
    pub guest_port: u16,
}

impl Publish {
    /// Parses `[ADDRESS:]HOSTPORT:GUESTPORT`; without an address it listens on loopback.
    ///
    /// # Errors
    /// The expected form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected HOSTPORT:GUESTPORT or ADDRESS:HOSTPORT:GUESTPORT, \
             such as 8080:80; host port 0 is any free one"
                .to_owned()
        };
        let (host, guest) = text.rsplit_once(':').ok_or_else(expected)?;
        let guest_port = guest.parse().map_err(|_| expected())?;
        let listen = match host.parse::<u16>() {
            Ok(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            Err(_) => host.parse().map_err(|_| expected())?,
        };
        if guest_port == 0 {
            return Err(expected());
        }
        Ok(Self { listen, guest_port })
    }
}

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MountSpec {
    host: PathBuf,
    guest: PathBuf,
    mode: String,
    /// Bytes and entries that programs may add.
    #[serde(default)]
    budget: Option<(u64, u64)>,
}

/// Names of the mount modes.
const MODES: [(&str, MountMode, GitWrites); 4] = [
    ("ro", MountMode::ReadOnly, GitWrites::Refused),
    ("rw", MountMode::ReadWrite, GitWrites::Refused),
    ("rw,git", MountMode::ReadWrite, GitWrites::Allowed),
    ("overlay", MountMode::Overlay, GitWrites::Refused),
];

/// Settings of a named sandbox, as the daemon gets them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    mounts: Vec<MountSpec>,
    net: Policy,
    env: Vec<(String, String)>,
    #[serde(default)]
    ram: Option<u64>,
    #[serde(default)]
    disk: Option<DiskArg>,
    #[serde(default)]
    packs: Vec<String>,
    #[serde(default)]
    guest_jit: GuestJitArg,
    #[serde(default)]
    image: Option<PathBuf>,
    /// Limits of the sandbox, and defaults for its commands.
    #[serde(default)]
    pub limits: LimitsArgs,
    pub publish: Vec<Publish>,
    /// What it continues from, instead of the image alone.
    #[serde(default)]
    pub origin: Origin,
    /// Most named sandboxes that may run.
    pub max: u32,
}

/// What a sandbox continues from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    #[default]
    Image,
    /// The file of a snapshot.
    File(PathBuf),
    /// A running sandbox.
    Fork(Name),
}

impl Spec {
    /// From the command line. Host paths become absolute, because the daemon runs in another
    /// folder.
    ///
    /// # Errors
    /// The working folder cannot be read.
    pub(crate) fn of(settings: &SettingsArgs, named: &NamedArgs) -> std::io::Result<Self> {
        let share = |mount: &Mount| {
            let mode = MODES
                .iter()
                .find(|(_, mode, git)| (mode, git) == (&mount.mode, &mount.git));
            Ok(MountSpec {
                host: std::path::absolute(&mount.host)?,
                guest: mount.guest.clone(),
                mode: mode.map_or("ro", |(name, ..)| name).to_owned(),
                budget: Some((mount.budget.bytes, mount.budget.entries)),
            })
        };
        let disk = |disk: &DiskArg| {
            let folder = disk.folder.as_deref().map(std::path::absolute);
            let folder = folder.transpose()?;
            std::io::Result::Ok(DiskArg { folder, ..*disk })
        };
        let mounts: std::io::Result<_> = settings.mount.iter().map(share).collect();
        Ok(Self {
            mounts: mounts?,
            net: settings.net.clone(),
            env: settings.env.clone(),
            ram: settings.ram,
            disk: settings.disk.as_ref().map(disk).transpose()?,
            packs: settings.pack.clone(),
            guest_jit: settings.guest_jit,
            image: match settings.foreign() {
                Some(file) => Some(std::path::absolute(file)?),
                // A later file of this name does not change what the sandbox is.
                None => settings
                    .container()
                    .map(|name| format!("oci:{name}").into()),
            },
            limits: settings.limits,
            publish: named.publish.clone(),
            origin: Origin::default(),
            max: named.max,
        })
    }

    /// The memory that it was asked to have.
    pub(super) fn ram(&self) -> Option<u64> {
        self.ram
    }

    /// Notes the memory of a copy, which is that of its original.
    pub(super) fn keep_ram(&mut self, ram: Option<u64>) {
        self.ram = ram;
    }

    /// The options that create this sandbox.
    pub(crate) fn settings(&self) -> SettingsArgs {
        let mount = |share: &MountSpec| {
            // An unknown name comes from a newer binary: use the safest mode.
            let mode = MODES.iter().find(|(name, ..)| *name == share.mode);
            let (_, mode, git) = mode.unwrap_or(&MODES[0]);
            let budget = share
                .budget
                .map(|(bytes, entries)| Budget { bytes, entries });
            Mount {
                git: git.clone(),
                budget: budget.unwrap_or_default(),
                ..Mount::new(&share.guest, &share.host, *mode)
            }
        };
        SettingsArgs {
            mount: self.mounts.iter().map(mount).collect(),
            net: self.net.clone(),
            env: self.env.clone(),
            ram: self.ram,
            disk: self.disk.clone(),
            pack: self.packs.clone(),
            guest_jit: self.guest_jit,
            image: self.image.clone(),
            limits: self.limits,
        }
    }

    /// The part that `status` may show, without variables, which may be secrets.
    pub(crate) fn summary(&self) -> Json {
        let path = |path: &Path| path.display().to_string();
        let mount = |share: &MountSpec| {
            json!({
                "host": path(&share.host),
                "guest": path(&share.guest),
                "mode": share.mode,
            })
        };
        json!({
            "net": self.net.to_string(),
            "ram": self.ram,
            "disk": self.disk.as_ref().map(|disk| disk.bytes),
            "packs": self.packs,
            "mounts": self.mounts.iter().map(mount).collect::<Vec<_>>(),
            "image": self.image.as_deref().map(path),
            "from": match &self.origin {
                Origin::Image => None,
                Origin::File(file) => Some(path(file)),
                Origin::Fork(name) => Some(name.to_string()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_published_on_this_computer_by_default() {
        let publish = |listen: &str, guest_port| {
            let listen = listen.parse().unwrap();
            Ok(Publish { listen, guest_port })
        };
        assert_eq!(Publish::parse("8080:80"), publish("127.0.0.1:8080", 80));
        assert_eq!(Publish::parse("0:80"), publish("127.0.0.1:0", 80));
        assert_eq!(Publish::parse("0.0.0.0:1:2"), publish("0.0.0.0:1", 2));
        assert_eq!(Publish::parse("[::1]:1:2"), publish("[::1]:1", 2));
        for bad in [
            "", "80", ":80", "80:", "80:0", "70000:80", "a:80", "host:1:2", "1:2:3",
        ] {
            assert!(Publish::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_survive_the_way_to_the_keeper() {
        let settings = SettingsArgs {
            mount: vec![
                Mount::new("/a", "/x", MountMode::ReadOnly),
                Mount::new("/b", "/y y", MountMode::ReadWrite),
                Mount::new("/c", "/z", MountMode::Overlay),
                Mount {
                    git: GitWrites::Allowed,
                    budget: Budget {
                        bytes: 5,
                        entries: 6,
                    },
                    ..Mount::new("/d", "/g", MountMode::ReadWrite)
                },
            ],
            net: "allow:example.com:443".parse().unwrap(),
            env: vec![("TOKEN".to_owned(), "secret\n".to_owned())],
            ram: Some(1 << 30),
            disk: Some(DiskArg {
                bytes: 1 << 30,
                folder: Some("/d".into()),
            }),
            pack: vec!["py".to_owned()],
            guest_jit: GuestJitArg::Auto,
            image: Some("/i.wasm".into()),
            limits: LimitsArgs {
                memory: Some(1 << 20),
                processes: Some(7),
                output_limit: Some(9),
                lifetime: Some(std::time::Duration::from_millis(1500)),
            },
        };
        let spec = Spec::of(&settings, &NamedArgs::default()).unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        let back: Spec = serde_json::from_str(&text).unwrap();
        assert_eq!(back.settings(), settings);
        assert!(!back.summary().to_string().contains("secret"));
        assert_eq!(back.summary()["mounts"][1]["mode"], "rw");
    }

    #[test]
    fn paths_of_the_host_are_made_absolute() {
        let settings = SettingsArgs {
            mount: vec![Mount::new("/a", "x", MountMode::ReadOnly)],
            ..SettingsArgs::default()
        };
        let spec = Spec::of(&settings, &NamedArgs::default())
            .unwrap()
            .settings();
        assert_eq!(spec.mount[0].host, std::path::absolute("x").unwrap());
    }
}
