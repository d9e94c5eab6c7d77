//! Server and client over loopback: what they promise while connections break.

mod abuse;
mod client;
mod conformance;
mod harness;
mod hostile;
mod hosts;
mod inspector;
mod metrics;
mod rest;
mod schema;
