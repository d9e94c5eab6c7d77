//! A language server for agent programs, in JSON and in the source form.
//!
//! [`serve`] speaks the Language Server Protocol over any reader and writer. It publishes what the
//! compiler finds, shows documentation and prices of atoms and builtins, completes, lays out, and
//! fixes names that were meant. It reads no file: documents are those that the editor opens.
//!
//! ```
//! use a99_lsp::{Ending, serve};
//! use agent99::Engine;
//!
//! let say = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
//! let mut input = say(r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}"#);
//! input += &say(r#"{"jsonrpc": "2.0", "id": 2, "method": "shutdown"}"#);
//! input += &say(r#"{"jsonrpc": "2.0", "method": "exit"}"#);
//!
//! let engine = Engine::builder().lint(true).build();
//! let input = std::io::Cursor::new(input);
//! let mut output = Vec::new();
//! let ending = serve(&engine, &|_| None, input, &mut output)?;
//! assert_eq!(ending, Ending::Exit);
//! assert!(String::from_utf8_lossy(&output).contains(r#""hoverProvider":true"#));
//! # Ok::<(), std::io::Error>(())
//! ```

#![warn(unreachable_pub)]

mod complete;
mod document;
mod facts;
mod fixes;
mod hover;
mod names;
mod place;
mod queue;
mod scan;
mod server;
mod text;
mod transport;

pub use server::{Ending, Layout, serve};
