//! An echo server on the WebSocket library of the product with its configuration, for suites that
//! test an implementation through an echo. Usage: websocket_echo ADDRESS
//!
//! The buffers are those of `crates/serve/src/transport/upgrade.rs`; the limits are larger, because
//! suites send up to 16 MB (docs/decisions/0010-transport-conformance.md).

use std::process::ExitCode;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

const READ_BUFFER: usize = 2048;
const MESSAGE_MAX: usize = 16 << 20;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: websocket_echo ADDRESS");
        return ExitCode::FAILURE;
    };
    let listener = match TcpListener::bind(&address).await {
        Ok(listener) => listener,
        Err(why) => {
            eprintln!("{address}: {why}");
            return ExitCode::FAILURE;
        }
    };
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(echo(stream));
    }
    ExitCode::SUCCESS
}

async fn echo(stream: TcpStream) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * MESSAGE_MAX)
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX));
    let Ok(mut socket) = accept_async_with_config(stream, Some(config)).await else {
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
            return;
        }
    }
}
