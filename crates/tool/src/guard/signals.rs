//! Signals to the guard itself. Whoever ends all processes of a name, or of a service, hits guards
//! too: they take it as a wish to end the program, and go when that is done.

use std::io;
use std::sync::mpsc::{Sender, sync_channel};
use std::thread;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::event::Event;
use super::server::Server;

/// From now on TERM, INT and HUP ask for the program's end instead of ending the guard, CONT has
/// it look whether the server is dead, and the ends of children are told: whoever started the server may have had them ignored, which is
/// inherited and leaves no code and no signal of a program to be read.
///
/// The listener of the runtime is the one way to a handler without `unsafe`; it has a thread and
/// a runtime of its own, and nothing else here knows of it.
pub(super) fn listen(tell: &Sender<Event>, server: Server) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let tell = tell.clone();
    let (set, is_set) = sync_channel(1);
    thread::Builder::new().spawn(move || {
        runtime.block_on(async {
            let terms = || {
                Ok::<_, io::Error>((
                    signal(SignalKind::terminate())?,
                    signal(SignalKind::interrupt())?,
                    signal(SignalKind::hangup())?,
                    signal(SignalKind::from_raw(Signal::CONT.as_raw()))?,
                    // Only that it is taken matters; the thread that reaps waits by itself.
                    signal(SignalKind::child())?,
                ))
            };
            let (mut term, mut interrupt, mut hangup, mut awake, _child) = match terms() {
                Ok(signals) => signals,
                Err(error) => return drop(set.send(Err(error))),
            };
            let _ = set.send(Ok(()));
            loop {
                let event = tokio::select! {
                    _ = term.recv() => Event::Asked,
                    _ = interrupt.recv() => Event::Asked,
                    _ = hangup.recv() => Event::Asked,
                    _ = awake.recv() => match server.is_gone() {
                        true => Event::Closed,
                        false => continue,
                    },
                };
                if tell.send(event).is_err() {
                    return;
                }
            }
        });
    })?;
    is_set
        .recv()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}
