//! `a99 agent reload`: makes the host reload its file of agents.

use super::client::Client;
use super::line;
use super::place::{PATIENCE, Place};
use super::wire::Call;
use crate::args::ReloadArgs;
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) fn run(args: &ReloadArgs) -> Result<Exit, Failure> {
    let place = Place::of(&args.place)?;
    let done = Client::needed(&place, PATIENCE, "`reload`")?.ask(Call::Reload, |_| {})?;
    if args.place.json {
        line(&done);
        return Ok(Exit::Ok);
    }
    let list = |name: &str| {
        let keys = done[name].as_array().into_iter().flatten();
        let keys: Vec<&str> = keys.filter_map(|key| key.as_str()).collect();
        match keys.is_empty() {
            true => "none".to_owned(),
            false => keys.join(", "),
        }
    };
    let text = format!("agents: {}; left: {}", list("agents"), list("left"));
    output::note("reloaded", &text);
    Ok(Exit::Ok)
}
