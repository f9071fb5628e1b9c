//! The program: its command line, and what it prints.

#[cfg(feature = "acp")]
mod acp;
pub mod args;
#[cfg(any(feature = "acp", feature = "mcp"))]
mod asked;
pub mod cmd;
pub mod dispatch;
mod going_on;
mod interrupt;
#[cfg(feature = "mcp")]
mod mcp;
mod parse;
mod screen;
pub mod text;
mod typed;
pub mod ui;
mod usage;
