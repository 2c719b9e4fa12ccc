//! The reference of a relay: bytes are handed on, both ways, without a look at them.

use std::io;
use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// Hands on until it is dropped.
pub async fn serve(listener: TcpListener, to: SocketAddr) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        tokio::spawn(hand_on(client, to));
    }
}

async fn hand_on(mut client: TcpStream, to: SocketAddr) -> io::Result<()> {
    let mut upstream = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut upstream).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn bytes_are_handed_on_both_ways() {
        let upstream = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (to, address) = (upstream.local_addr(), proxy.local_addr());
        let serving = tokio::spawn(serve(proxy, to.expect("an address")));
        let client = TcpStream::connect(address.expect("an address")).await;
        let mut client = client.expect("a connection");
        let (mut server, _) = upstream.accept().await.expect("handed on");
        client.write_all(b"ask").await.expect("written");
        let mut asked = [0; 3];
        server.read_exact(&mut asked).await.expect("asked");
        server.write_all(b"answer").await.expect("written");
        drop(server);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("answered");
        assert_eq!((&asked[..], &answer[..]), (&b"ask"[..], &b"answer"[..]));
        serving.abort();
    }
}
