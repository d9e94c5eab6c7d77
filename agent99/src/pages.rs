//! Pages whose Rust examples run as doctests.

/// The first page of the project.
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The engine in a service.
#[doc = include_str!("../../docs/rust.md")]
pub struct InAService;

/// Programs that models write.
#[doc = include_str!("../../docs/models.md")]
pub struct ByModels;

/// Runs that a host drives itself.
#[doc = include_str!("../../docs/run.md")]
pub struct ByHand;

/// From agent-99 and its successors.
#[doc = include_str!("../../docs/migration.md")]
pub struct FromAgent99;
