//! `a99 man`: generates manual pages from the command-line definitions.

use crate::args::{Cli, ManArgs};
use crate::failure::{Exit, Failure};
use crate::{output, write};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use std::path::Path;

pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(dir) = &args.dir else {
        output::bytes(&page(&command, "a99")?);
        return Ok(Exit::Ok);
    };
    let failed = |error| Failure::about(&dir.display().to_string(), error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut written = 0usize;
    pages(dir, &command, "a99", &mut written)?;
    output::note(&dir.display().to_string(), &format!("{written} pages"));
    Ok(Exit::Ok)
}

/// Writes the pages of a command and its subcommands.
fn pages(dir: &Path, command: &Command, name: &str, written: &mut usize) -> Result<(), Failure> {
    let path = dir.join(format!("{name}.1"));
    write::replace(&path, &page(command, name)?, std::iter::empty())?;
    *written += 1;
    for inner in command.get_subcommands() {
        let absent = cfg!(not(feature = "sandbox")) && inner.get_name() == "sandbox";
        if inner.is_hide_set() || absent || inner.get_name() == "help" {
            continue;
        }
        pages(dir, inner, &format!("{name}-{}", inner.get_name()), written)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let command = command.clone().display_name(name.to_owned());
    let man = Man::new(command).title(name.to_uppercase());
    let rendered = man.render(&mut page);
    rendered.map_err(|error| Failure::about("man", error))?;
    Ok(page)
}
