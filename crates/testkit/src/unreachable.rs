//! A place that does not take connections and does not refuse them either.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Longer than a connection on loopback takes.
const PATIENCE: Duration = Duration::from_millis(300);

/// Most connections that a system may put before a queue of one.
const MOST: usize = 64;

/// A port at which whoever connects waits for ever, as behind a wall that drops what it does not want: its queue is
/// full and nobody empties it.
#[derive(Debug)]
pub struct Unreachable {
    address: SocketAddr,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Unreachable {
    /// Opens the port and fills its queue.
    ///
    /// # Errors
    /// When the system gives no port, or takes every connection all the same.
    pub async fn open() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(1)?;
        let address = listener.local_addr()?;
        let mut waiting = Vec::new();
        while let Ok(connected) = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await
        {
            waiting.push(connected?);
            if waiting.len() > MOST {
                return Err(io::Error::other(
                    "the queue of a listener is never full here",
                ));
            }
        }
        Ok(Self {
            address,
            _listener: listener,
            _waiting: waiting,
        })
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}
