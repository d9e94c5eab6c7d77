//! The integration tests of the workspace.

mod a99b;
mod artifacts;
mod attack;
mod builders;
mod compiled;
mod complete;
mod differential;
mod lint;
mod oracle;
mod pages;
mod pools;
mod prices;
mod replay;
mod security_artifacts;
mod security_checks;
mod security_cpu;
mod security_data;
mod security_escape;
mod security_fuel;
mod security_io;
mod security_memory;
mod security_prices;
mod security_programs;
mod security_stops;
mod shell;
mod vectors;
