//! `cargo xtask package`: the files that another machine needs to run sandboxes, with a list of
//! their hashes that may be signed.
//!
//! Two runs from one clone and one image give the same bytes: the command names no folder of this
//! machine, and archives have fixed times and owners.

use crate::guest;
use crate::shell::{Failed, cargo, failed, output, root, run, target};
use a99_core::artifact::sign::{PACKAGE, SecretKey, sign_text};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "expected [--out DIR] [--key FILE] [--image FILE] [--command FILE] \
    [--packs NAME,NAME]";

/// File names of a package; `cli/src/commands/sandbox/packaged.rs` finds them by these.
const COMMAND: &str = "a99";
const IMAGE: &str = "image.tar.zst";
const LIST: &str = "package.json";
const SIGNATURE: &str = "package.json.sig";

/// File name of a pack.
pub(crate) fn pack_file(name: &str) -> String {
    format!("pack-{name}.tar.zst")
}

/// Licences of the project; the image has those of its parts.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Format of the list, and version of its layout.
const FORMAT: &str = "agent99 package";
const VERSION: u32 = 1;

/// Level of compression: higher ones need more memory to unpack than a99 accepts.
const LEVEL: &str = "-19";

#[derive(Default)]
struct Options {
    out: Option<PathBuf>,
    key: Option<PathBuf>,
    image: Option<PathBuf>,
    command: Option<PathBuf>,
    packs: Option<PathBuf>,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Options, Failed> {
        let mut options = Options::default();
        for pair in args.chunks(2) {
            let (slot, value) = match *pair {
                ["--out", value] => (&mut options.out, value),
                ["--key", value] => (&mut options.key, value),
                ["--image", value] => (&mut options.image, value),
                ["--command", value] => (&mut options.command, value),
                ["--packs", value] => (&mut options.packs, value),
                _ => return Err(Failed(USAGE.to_owned())),
            };
            *slot = Some(PathBuf::from(value));
        }
        Ok(options)
    }
}

/// Makes the package.
pub(crate) fn package(args: &[&str]) -> Result<(), Failed> {
    let options = Options::parse(args)?;
    let secret = options.key.as_deref().map(secret_key).transpose()?;
    let out = match options.out {
        Some(out) => out,
        None => target()?.join("package"),
    };
    // What an earlier run left must not be part of this one.
    match fs::remove_dir_all(&out) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed(out.display(), error));
        }
        _ => fs::create_dir_all(&out).map_err(|error| failed(out.display(), error))?,
    }
    let image = out.join(IMAGE);
    match &options.image {
        Some(file) => copy(file, &image, 0o644)?,
        None => pack_image(&image)?,
    }
    let hash = sha256(&image)?;
    let public = secret.as_ref().map(SecretKey::to_public_json);
    let command = match options.command {
        Some(command) => command,
        None => build(&hash, public.as_deref())?,
    };
    copy(&command, &out.join(COMMAND), 0o755)?;
    let mut files = vec![
        listed(&out, COMMAND, "command")?,
        listed(&out, IMAGE, "image")?,
    ];
    let packs = options.packs.as_deref().and_then(Path::to_str);
    for name in packs.map(|packs| packs.split(',')).into_iter().flatten() {
        let file = pack_file(name);
        guest::build(&["--locked", "--pack", name])?;
        pack(&["--pack", name], &out.join(&file))?;
        files.push(listed(&out, &file, "pack")?);
    }
    for name in LICENCES {
        copy(&root().join(name), &out.join(name), 0o644)?;
        files.push(listed(&out, name, "licence")?);
    }
    let version = env!("CARGO_PKG_VERSION");
    let target = target_of(&out.join(COMMAND))?;
    let list = json!({
        "format": FORMAT, "version": VERSION, "release": version, "target": target, "files": files,
    });
    let text = format!("{list:#}\n");
    write(&out.join(LIST), text.as_bytes())?;
    let mut names = vec![COMMAND, IMAGE, LICENCES[0], LICENCES[1], LIST];
    if let Some(key) = &secret {
        write(
            &out.join(SIGNATURE),
            &sign_text(PACKAGE, text.as_bytes(), key),
        )?;
        names.push(SIGNATURE);
    }
    archive(&out, &format!("agent99-{version}-{target}"), &names)?;
    print!("{text}");
    match &secret {
        Some(key) => eprintln!("signed by key {}", key.id()),
        None => eprintln!("not signed: no --key"),
    }
    Ok(())
}

fn secret_key(file: &Path) -> Result<SecretKey, Failed> {
    let text = fs::read(file).map_err(|error| failed(file.display(), error))?;
    SecretKey::from_json(&text).map_err(|error| failed(file.display(), error))
}

/// Packs the newest image, which is built where something of it changed.
fn pack_image(file: &Path) -> Result<(), Failed> {
    guest::build(&[])?;
    pack(&[], file)
}

/// Exports the image, or what these options name, and packs it with zstd.
fn pack(options: &[&str], file: &Path) -> Result<(), Failed> {
    let gzipped = file.with_extension("gz");
    let mut export = guest::sandbox("image")?;
    run(export.arg("export").args(options).arg(&gzipped))?;
    let mut unpack = Command::new("gzip");
    let unpack = unpack.arg("-dc").arg(&gzipped).stdout(Stdio::piped());
    let mut unpack = unpack.spawn().map_err(|error| failed("gzip", error))?;
    let mut pack = Command::new("zstd");
    // One thread: others cut the content in other places.
    pack.args([LEVEL, "--single-thread", "--quiet", "--force", "-o"])
        .arg(file);
    if let Some(plain) = unpack.stdout.take() {
        pack.stdin(plain);
    }
    run(&mut pack)?;
    let status = unpack.wait().map_err(|error| failed("gzip", error))?;
    if !status.success() {
        return Err(failed("gzip", status));
    }
    fs::remove_file(&gzipped).map_err(|error| failed(gzipped.display(), error))
}

/// Builds the command, stripped, with the hash of its image and the key of its package.
///
/// It has a separate target folder, because other flags compile everything again.
fn build(image: &str, key: Option<&str>) -> Result<PathBuf, Failed> {
    let folder = target()?.join("package-build");
    let mut build = cargo("build");
    build.args([
        "--locked",
        "--profile",
        "sandbox",
        "-p",
        "a99-cli",
        "--bin",
        "a99",
    ]);
    build
        .args(["--features", "full,sandbox", "--target-dir"])
        .arg(&folder);
    // Cargo adds these to the flags in `.cargo/config.toml`, unless a variable replaces both.
    build
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let places = places()?;
    let flags = places
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let flags: Value = flags.collect();
    build
        .arg("--config")
        .arg(format!("build.rustflags={flags}"));
    let c_flags = places
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    build.env("CFLAGS", c_flags.collect::<Vec<_>>().join(" "));
    build.env("CARGO_PROFILE_SANDBOX_STRIP", "symbols");
    build.env("CARGO_PROFILE_SANDBOX_DEBUG", "0");
    build.env("SOURCE_DATE_EPOCH", "0");
    build.env("A99_PACKAGE_IMAGE", image);
    match key {
        Some(key) => build.env("A99_PACKAGE_KEY", key),
        None => build.env_remove("A99_PACKAGE_KEY"),
    };
    run(&mut build)?;
    Ok(folder.join("sandbox").join(COMMAND))
}

/// Folders of this machine, and their names in the command.
fn places() -> Result<Vec<(String, &'static str)>, Failed> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let home = std::env::var("CARGO_HOME").ok();
    let home = home.or_else(|| Some(format!("{}/.cargo", std::env::var("HOME").ok()?)));
    let mut places = vec![(sysroot.trim().to_owned(), "/rust")];
    places.extend(home.map(|home| (home, "/cargo")));
    places.push((root().display().to_string(), "/agent99"));
    Ok(places)
}

/// The target of a command by its ELF header (machine, at 18): the hosts that sandboxes run on.
fn target_of(command: &Path) -> Result<&'static str, Failed> {
    let bytes = fs::read(command).map_err(|error| failed(command.display(), error))?;
    match (bytes.get(..4), bytes.get(18..20)) {
        (Some(b"\x7fELF"), Some([0x3e, 0])) => Ok("x86_64-unknown-linux-gnu"),
        (Some(b"\x7fELF"), Some([0xb7, 0])) => Ok("aarch64-unknown-linux-gnu"),
        _ => Err(failed(command.display(), "is no command of a known target")),
    }
}

fn listed(folder: &Path, name: &str, kind: &str) -> Result<Value, Failed> {
    let file = folder.join(name);
    let size = fs::metadata(&file)
        .map_err(|error| failed(file.display(), error))?
        .len();
    Ok(json!({"name": name, "kind": kind, "size": size, "sha256": sha256(&file)?}))
}

fn sha256(file: &Path) -> Result<String, Failed> {
    let text = output(Command::new("sha256sum").arg("--").arg(file))?;
    let hash = text.split_whitespace().next().unwrap_or_default();
    match hash.len() {
        64 => Ok(hash.to_owned()),
        _ => Err(failed("sha256sum", text)),
    }
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failed> {
    let copied = fs::copy(from, to);
    let done = copied.and_then(|_| fs::set_permissions(to, fs::Permissions::from_mode(mode)));
    done.map_err(|error| failed(from.display(), error))
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failed> {
    fs::write(file, bytes).map_err(|error| failed(file.display(), error))
}

/// Packs the files into one archive, below a folder of this name.
fn archive(out: &Path, name: &str, files: &[&str]) -> Result<(), Failed> {
    let tar = out.join(name).with_added_extension("tar");
    let mut command = Command::new("tar");
    command.arg("-C").arg(out).arg("-cf").arg(&tar);
    command.args([
        "--format=ustar",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
    ]);
    command.arg(format!("--transform=s,^,{name}/,")).args(files);
    run(&mut command)?;
    run(Command::new("gzip").args(["-n", "-9", "-f"]).arg(&tar))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values() {
        let options = Options::parse(&["--out", "a", "--key", "b"]).expect("options");
        assert_eq!(options.out.as_deref(), Some(Path::new("a")));
        assert_eq!(options.key.as_deref(), Some(Path::new("b")));
        assert!(Options::parse(&["--out"]).is_err());
        assert!(Options::parse(&["--other", "a"]).is_err());
    }

    #[test]
    fn the_command_looks_for_the_names_of_a_package() {
        let file = root().join("cli/src/commands/sandbox/packaged.rs");
        let text = fs::read_to_string(file).expect("its source");
        for name in [
            IMAGE,
            LIST,
            SIGNATURE,
            "pack",
            "image",
            "pack-{name}.tar.zst",
        ] {
            assert!(text.contains(&format!("\"{name}\"")), "{name}");
        }
        for variable in ["A99_PACKAGE_IMAGE", "A99_PACKAGE_KEY"] {
            assert!(text.contains(&format!("option_env!(\"{variable}\")")));
        }
    }

    #[test]
    fn archives_are_the_same_at_any_time() {
        let archived = |name: &str| {
            let folder = std::env::temp_dir().join(format!("a99-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("file"), "content").expect("written");
            fs::set_permissions(folder.join("file"), fs::Permissions::from_mode(0o644))
                .expect("a mode");
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(name.len() as u64);
            let file = fs::File::options().write(true).open(folder.join("file"));
            file.expect("a file").set_modified(at).expect("a time");
            archive(&folder, "package", &["file"]).expect("an archive");
            let bytes = fs::read(folder.join("package.tar.gz")).expect("bytes");
            fs::remove_dir_all(&folder).expect("removed");
            bytes
        };
        assert_eq!(archived("first"), archived("the-second"));
    }
}
