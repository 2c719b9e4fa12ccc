//! Turnwire in this process: the whole server as it is shipped, but for its producer.
//!
//! The composition root takes any producer; this one is paced by the load client, which is the
//! only way to hold a window open from outside. Settings are the defaults, on a folder of its own, but
//! that one client may have more streams open than a person has.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnwire_serve::app::App;
use turnwire_serve::config::{ServerConfig, SettingFlag, SettingSources};
use turnwire_serve::listen;

use crate::producer::PacedProducer;

/// Streams that the one client of a run may have open.
pub const CHAT_STREAMS_MAX: &str = "10000";

/// A server that is ready to serve.
pub struct PacedServer {
    app: App,
    pub listener: TcpListener,
}

/// Puts the server together on `dir`; side channels are taken from `side`.
pub async fn start(dir: PathBuf, side: TcpListener) -> io::Result<PacedServer> {
    let sources = SettingSources {
        flags: [
            ("listen.address", "127.0.0.1:0"),
            ("stream.chat_streams_max", CHAT_STREAMS_MAX),
            ("turn.running_max", CHAT_STREAMS_MAX),
            ("turn.running_max_per_owner", CHAT_STREAMS_MAX),
        ]
        .map(|(key, value)| SettingFlag {
            name: key,
            key,
            value: value.to_owned(),
        })
        .to_vec(),
        home: Some(dir),
        ..SettingSources::default()
    };
    let config = ServerConfig::load(&sources).map_err(io::Error::other)?;
    let listener = listen::bind(&config).map_err(io::Error::other)?;
    let (give, take) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Ok((stream, _)) = side.accept().await {
            if stream.set_nodelay(true).is_err() || give.send(stream).await.is_err() {
                break;
            }
        }
    });
    let app = App::start(config, Arc::new(PacedProducer::new(take)))
        .await
        .map_err(io::Error::other)?;
    Ok(PacedServer { app, listener })
}

impl PacedServer {
    /// Serves until `drain` is cancelled.
    pub async fn serve(self, drain: CancellationToken) {
        self.app.serve(self.listener, drain).await;
    }
}
