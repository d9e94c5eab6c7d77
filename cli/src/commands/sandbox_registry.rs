//! `a99 sandbox image add docker://NAME`: downloads an image of a registry. An interrupt leaves
//! nothing behind.

use crate::output;
use crate::sandbox_image_args::AddArgs;
use a99_sandbox::oci::registry::{Access, Download, Reference, SCHEME, Secret};
use a99_sandbox::oci::{Limits, OciCode, OciError, Store};
use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

/// Shortest time between two states of the progress bar, and its width.
const TICK: Duration = Duration::from_millis(100);
const WIDTH: u64 = 24;

/// The name in a registry, if the arguments have one.
pub(super) fn named(args: &AddArgs) -> Option<&str> {
    args.file.to_str().filter(|name| name.starts_with(SCHEME))
}

/// Downloads the image with this name.
pub(super) fn download(store: &Store, name: &str, args: &AddArgs) -> Result<Download, OciError> {
    let failed = |code, text: String| OciError {
        code,
        place: name.to_owned(),
        text,
        help: None,
    };
    if args.tag.is_some() {
        let text = "the tag stands in the name of a registry's image, not in --tag";
        return Err(failed(OciCode::Name, text.to_owned()));
    }
    let reference = Reference::parse(name)?;
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("A99_REGISTRY_USER").zip(variable("A99_REGISTRY_PASSWORD"));
    let access = Access {
        policy: args.net.clone(),
        insecure: args.insecure,
        user: user.map(|(user, password)| (user, Secret::new(password))),
        auth_host: args.auth_host.clone(),
    };
    let is_shown = !args.json && stderr().is_terminal();
    let mut shown = Instant::now();
    let mut progress = |done: u64, total: u64| {
        if is_shown && shown.elapsed() >= TICK {
            shown = Instant::now();
            output::status(&bar(done, total));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| failed(OciCode::Io, error.to_string()))?;
    let download = Download::new(store)?;
    let limits = Limits::default();
    let fetched = runtime.block_on(async {
        tokio::select! {
            fetched = download.fetch(&reference, &access, &limits, &mut progress) => fetched,
            _ = tokio::signal::ctrl_c() => Err(failed(OciCode::Io, "interrupted".to_owned())),
        }
    });
    if is_shown {
        output::clear_status();
    }
    fetched.map(|()| download)
}

fn bar(done: u64, total: u64) -> String {
    let filled = (done.saturating_mul(WIDTH) / total.max(1)).min(WIDTH) as usize;
    let (full, width) = ("#".repeat(filled), WIDTH as usize);
    format!("    [{full:width$}] {} of {} MiB", done >> 20, total >> 20)
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn the_bar_fills() {
        let half = format!("    [{}{}] 1 of 2 MiB", "#".repeat(12), " ".repeat(12));
        assert_eq!(bar(1 << 20, 2 << 20), half);
        assert_eq!(bar(0, 0), format!("    [{}] 0 of 0 MiB", " ".repeat(24)));
        assert!(bar(u64::MAX, 1).contains(&"#".repeat(24)));
    }
}
