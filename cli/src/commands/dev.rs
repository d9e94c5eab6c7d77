//! `a99 dev`: tools for developing agents.

use crate::args::{DevArgs, DevCommand, ModelServerArgs};
use crate::failure::{Exit, Failure};

pub(crate) fn run(args: &DevArgs) -> Result<Exit, Failure> {
    match &args.command {
        DevCommand::ModelServer(args) => model_server(args),
    }
}

#[cfg(feature = "models")]
fn model_server(args: &ModelServerArgs) -> Result<Exit, Failure> {
    use crate::{input, output};
    use a99_models::server::ModelServer;
    use agent99::capabilities::ai::ModelScript;
    use agent99::{Map, Value};
    let source = input::read(&args.script)?;
    let name = source.name.clone();
    let script = ModelScript::new(&input::parse_value(&source)?);
    let script = script.map_err(|error| Failure::about(&name, error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))?;
    runtime.block_on(async {
        let server = ModelServer::start_on(args.port, script)
            .await
            .map_err(|error| {
                Failure::about(&format!("cannot listen on port {}", args.port), error)
            })?;
        let url = server.url();
        if args.json {
            let mut map = Map::new();
            map.insert("ok", true);
            map.insert("url", url);
            map.insert("port", f64::from(server.addr().port()));
            output::json(&Value::Object(map));
        } else {
            output::out(&format!("{url}\n"));
        }
        // The server stops with the command.
        let interrupted = tokio::signal::ctrl_c().await;
        interrupted.map_err(|error| Failure::about("cannot listen for interrupts", error))?;
        Ok(Exit::Aborted)
    })
}

#[cfg(not(feature = "models"))]
fn model_server(args: &ModelServerArgs) -> Result<Exit, Failure> {
    let what = format!("`a99 dev model-server {}`", args.script.display());
    Err(Failure::missing_feature(&what, "models"))
}
