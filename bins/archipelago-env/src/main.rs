//! The environment: an HTTP server around a world.

fn main() -> std::process::ExitCode {
    archipelago_env::run(std::env::args_os())
}
