//! Configuration of the private apt.

use super::super::command::{output, program};
use super::super::error::{ErrorCode, ImageError};
use super::super::packages::{Arch, SUITE};
use std::path::Path;

/// Network settings taken over from the machine's apt. None of them weakens the check of
/// signatures.
const KEPT_SETTINGS: [&str; 9] = [
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
    "Acquire::http::Timeout",
    "Acquire::https::Timeout",
    "Acquire::https::CAInfo",
    "Acquire::ForceIPv4",
    "Acquire::ForceIPv6",
    "Acquire::Check-Date",
    "Acquire::Check-Valid-Until",
];

/// The only source: Debian's main archive, verified by its keyring alone.
pub(super) fn source(mirror: &str, keyring: &str) -> String {
    format!("Types: deb\nURIs: {mirror}\nSuites: {SUITE}\nComponents: main\nSigned-By: {keyring}\n")
}

/// Builds the configuration file. apt reads it before all others, and it disables the main
/// file and the parts.
pub(super) fn file(folder: &Path, kept: &[String]) -> Result<String, ImageError> {
    let folder = folder
        .to_str()
        .filter(|path| !path.contains(['"', '\\', '\n']));
    let folder = folder.ok_or_else(|| {
        let reason = "apt cannot work in a folder of this name";
        ImageError::new(ErrorCode::Io, "cache folder", reason).help("set A99_CACHE_DIR")
    })?;
    let host = Arch::host().map_or("", Arch::name);
    let mut text = format!(
        r#"Dir::Etc::parts "{folder}/empty";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "{folder}/guest.sources";
Dir::Etc::sourceparts "{folder}/empty";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{folder}/empty";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "{folder}/empty";
Dir::State "{folder}/state";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/state/status";
Dir::Cache "{folder}/cache";
APT::Architecture "riscv64";
APT::Architectures {{ "riscv64"; "{host}"; }};
APT::Get::AllowUnauthenticated "false";
APT::Sandbox::User "root";
Acquire::AllowInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "3";
"#
    );
    for line in kept {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// Returns the machine's network settings as lines of a configuration file.
pub(super) fn of_machine() -> Vec<String> {
    let dump = output(program("apt-config").arg("dump")).unwrap_or_default();
    kept_settings(&dump)
}

fn kept_settings(dump: &str) -> Vec<String> {
    let kept = |line: &&str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        // Proxies may be set for single hosts: `Acquire::http::Proxy::HOST`.
        KEPT_SETTINGS.iter().any(|setting| {
            let rest = name.strip_prefix(setting);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        })
    };
    dump.lines().filter(kept).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_to_the_network_is_kept() {
        let dump = "\
APT \"\";
Acquire \"\";
Acquire::AllowInsecureRepositories \"true\";
Acquire::http \"\";
Acquire::http::Proxy \"http://proxy.example:3128\";
Acquire::http::Proxy::deb.debian.org \"DIRECT\";
Acquire::http::ProxyAutoDetect \"run-me\";
Acquire::Check-Date \"false\";
APT::Get::AllowUnauthenticated \"true\";
APT::Update::Post-Invoke:: \"run-me\";
";
        assert_eq!(
            kept_settings(dump),
            [
                "Acquire::http::Proxy \"http://proxy.example:3128\";",
                "Acquire::http::Proxy::deb.debian.org \"DIRECT\";",
                "Acquire::Check-Date \"false\";",
            ]
        );
    }

    #[test]
    fn everything_is_below_the_cache_folder() {
        let text = file(Path::new("/c"), &["Acquire::ForceIPv4 \"1\";".to_owned()]).unwrap();
        for line in text.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(
                line.contains("\"/c/") || line.contains("/dev/null"),
                "{line}"
            );
        }
        assert!(text.ends_with("Acquire::ForceIPv4 \"1\";\n"));
        assert!(file(Path::new("/c\"d"), &[]).is_err());
        let source = source("http://m.example/debian", "/usr/share/keyrings/k.gpg");
        assert!(source.contains("Signed-By: /usr/share/keyrings/"));
        assert!(!source.to_lowercase().contains("trusted"));
    }
}
