//! The parts this program plays when it starts itself again, each in a process of its own.
//!
//! A server says its addresses in one line and serves until its standard input ends, which it
//! does when the coordinator stops or dies. Every other role prints one line of JSON and ends.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::load::{chat, dispatch, fanout, fill, idle, models, replay, turns};
use crate::{
    adapter, append, floor, machine, paced, policy, provider, proxy, service, token_check,
};

/// No server lives longer, whatever happens to its coordinator.
const LIFE_MAX: Duration = Duration::from_secs(900);

/// A part to play.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchRole {
    Floor(floor::SampleLengths),
    /// Turnwire with a paced producer.
    Paced {
        /// A new folder for its files.
        #[arg(long)]
        dir: PathBuf,
    },
    /// A data service for sub-agents.
    Service(service::Args),
    /// A provider of models that keeps time.
    Provider(provider::Args),
    /// Hands bytes on, both ways, without a look at them.
    Proxy {
        /// The server behind it.
        #[arg(long)]
        to: SocketAddr,
    },
    /// Sessions that append in a closed loop.
    Append(append::Args),
    /// One producer, many watchers.
    Fanout(fanout::Args),
    /// A session gets many events.
    Fill(fill::Args),
    Replay(replay::Args),
    Turns(turns::Args),
    /// Turns whose answer is their stream.
    Chat(chat::Args),
    /// Turns that ask sub-agents.
    Dispatch(dispatch::Args),
    /// Events through the gate of the rendering policy.
    Policy,
    /// Tokens through the check of the server.
    Tokens {
        /// Where the files of keys and tokens are written.
        #[arg(long)]
        dir: PathBuf,
    },
    /// Streams of every dialect through adapters.
    Adapter(adapter::Args),
    /// Turns whose words come from a provider.
    Models(models::Args),
    /// Connections that do nothing.
    Idle(idle::Args),
}

/// Plays it to its end.
pub fn play(role: BenchRole) -> io::Result<()> {
    match role {
        BenchRole::Floor(lengths) => serve_floor(lengths),
        BenchRole::Paced { dir } => serve_paced(dir),
        BenchRole::Service(args) => serve_data(args),
        BenchRole::Provider(args) => serve_model(args),
        BenchRole::Proxy { to } => serve_proxy(to),
        BenchRole::Append(args) => {
            let runtime = Runtime::new()?;
            tell(&runtime.block_on(append::run(&args))?)
        }
        BenchRole::Fanout(args) => tell(&fanout::run(&args)?),
        BenchRole::Fill(args) => tell(&fill::run(&args)?),
        BenchRole::Replay(args) => tell(&replay::run(&args)?),
        BenchRole::Turns(args) => tell(&turns::run(&args)?),
        BenchRole::Chat(args) => tell(&chat::run(&args)?),
        BenchRole::Dispatch(args) => tell(&dispatch::run(&args)?),
        BenchRole::Policy => tell(&policy::run()?),
        BenchRole::Tokens { dir } => tell(&alone()?.block_on(token_check::run(&dir))?),
        BenchRole::Adapter(args) => tell(&adapter::run(args)?),
        BenchRole::Models(args) => {
            machine::raise_open_files()?;
            tell(&alone()?.block_on(models::run(&args))?)
        }
        BenchRole::Idle(args) => tell(&idle::run(&args)?),
    }
}

fn tell(outcome: &impl Serialize) -> io::Result<()> {
    println!("{}", serde_json::to_string(outcome)?);
    Ok(())
}

fn serve_floor(lengths: floor::SampleLengths) -> io::Result<()> {
    machine::raise_open_files()?;
    alone()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let side = TcpListener::bind("127.0.0.1:0").await?;
        announce(&listener, side.local_addr()?)?;
        tokio::select! {
            served = floor::serve(listener, side, lengths) => served,
            () = ended() => Ok(()),
        }
    })
}

/// Runs on the runtime that the release binary builds.
fn serve_paced(dir: PathBuf) -> io::Result<()> {
    machine::raise_open_files()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let side = TcpListener::bind("127.0.0.1:0").await?;
        let side_address = side.local_addr()?;
        let server = paced::start(dir, side).await?;
        announce(&server.listener, side_address)?;
        tokio::select! {
            () = server.serve(CancellationToken::new()) => {}
            () = ended() => {}
        }
        Ok(())
    })
}

fn serve_data(args: service::Args) -> io::Result<()> {
    machine::raise_open_files()?;
    alone()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http {}", listener.local_addr()?);
        tokio::select! {
            served = service::serve(listener, args) => served,
            () = ended() => Ok(()),
        }
    })
}

fn serve_model(args: provider::Args) -> io::Result<()> {
    machine::raise_open_files()?;
    alone()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http {}", listener.local_addr()?);
        tokio::select! {
            served = provider::serve(listener, args) => served,
            () = ended() => Ok(()),
        }
    })
}

/// Runs on the runtime that the release binary builds.
fn serve_proxy(to: SocketAddr) -> io::Result<()> {
    machine::raise_open_files()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http {}", listener.local_addr()?);
        tokio::select! {
            served = proxy::serve(listener, to) => served,
            () = ended() => Ok(()),
        }
    })
}

/// A runtime of this one thread.
fn alone() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Says a server's two addresses.
fn announce(listener: &TcpListener, side: SocketAddr) -> io::Result<()> {
    println!("http {} side {side}", listener.local_addr()?);
    Ok(())
}

/// Resolves when standard input ends, or after the longest life.
async fn ended() {
    let (done, over) = oneshot::channel();
    std::thread::spawn(move || {
        // Nobody writes there; it ends with the coordinator.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let _ = done.send(());
    });
    let _ = tokio::time::timeout(LIFE_MAX, over).await;
}
