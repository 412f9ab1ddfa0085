//! The MCP file server for worlds: the program. All of it is in the library, since `archipelago` can play its part too.

use std::process::ExitCode;

fn main() -> ExitCode {
    filesystem_server::run(std::env::args_os())
}
