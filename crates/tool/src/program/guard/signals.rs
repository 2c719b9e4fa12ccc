//! Signals to the guard itself. An operator who ends all processes of a name or of a service ends
//! guards too: a guard then ends its program and exits.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::event::GuardEvent;
use super::server::ParentServer;

/// From now on TERM, INT and HUP request the end of the program instead of ending the guard, and
/// CONT checks whether the server is dead. CHLD is handled because an ignored CHLD is inherited from
/// whoever started the server, and then no exit status of a program can be read.
///
/// The tokio listener is the only signal handler without `unsafe`; it has its own thread and
/// runtime.
pub(super) fn listen(sender: &Sender<GuardEvent>, server: ParentServer) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut cont = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    // Only the handler matters, which stays; the reaping thread waits by itself.
    drop(signal(SignalKind::child())?);
    drop(entered);
    let sender = sender.clone();
    thread::Builder::new().spawn(move || {
        runtime.block_on(async {
            loop {
                let event = tokio::select! {
                    _ = term.recv() => GuardEvent::EndRequested,
                    _ = interrupt.recv() => GuardEvent::EndRequested,
                    _ = hangup.recv() => GuardEvent::EndRequested,
                    _ = cont.recv() => match server.is_dead() {
                        true => GuardEvent::InputClosed,
                        false => continue,
                    },
                };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
    })?;
    Ok(())
}
