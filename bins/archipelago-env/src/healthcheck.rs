//! `archipelago-env healthcheck`: for Docker's `HEALTHCHECK` and for scripts.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// For connecting and for each read.
const LIMIT: Duration = Duration::from_secs(5);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks until there is a good answer or `wait` is over; at least once.
pub(crate) fn ask_for(wait: Duration, host: &str, port: u16) -> Result<(), String> {
    let started = Instant::now();
    loop {
        let answer = ask(host, port);
        if answer.is_ok() || started.elapsed() >= wait {
            return answer;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Asks `GET /health`. An address that means all interfaces is asked over the loopback.
fn ask(host: &str, port: u16) -> Result<(), String> {
    let host = match host.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() && address.is_ipv6() => "::1",
        Ok(address) if address.is_unspecified() => "127.0.0.1",
        _ => host,
    };
    let answer =
        get_health(host, port).map_err(|error| format!("no answer from {host}:{port}: {error}"))?;
    let status = answer.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(format!("{host}:{port} answered `{status}`")),
    }
}

fn get_health(host: &str, port: u16) -> io::Result<String> {
    let address = (host, port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other("the host name has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
