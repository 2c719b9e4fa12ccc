//! A way to the server that loses what it is told to lose.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::server::PATIENCE;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It does not get through.
    Cut,
    /// It gets through, and its answer is lost when `Gate::lose` says so.
    Unanswered,
}

/// The rules: requests that contain the words meet the fate, the first that fits.
type Rules = Vec<(&'static str, Fate)>;

/// A proxy on a free port.
pub(crate) struct Gate {
    url: String,
    rules: Arc<Mutex<Rules>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    met: Receiver<()>,
    lose: Sender<()>,
}

/// One connection's share of the gate.
struct Way {
    rules: Arc<Mutex<Rules>>,
    met: Sender<()>,
    lose: Arc<Mutex<Receiver<()>>>,
    unanswered: AtomicBool,
}

impl Gate {
    /// A way to the server at `address`.
    pub(crate) fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let address = address.to_owned();
        let rules = Arc::<Mutex<Rules>>::default();
        let open = Arc::<Mutex<Vec<TcpStream>>>::default();
        let (tell, met) = channel();
        let (lose, told) = channel();
        let told = Arc::new(Mutex::new(told));
        let (ruled, opened) = (Arc::clone(&rules), Arc::clone(&open));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // A server that is away is a connection that breaks.
                let Ok(far) = TcpStream::connect(&address) else {
                    continue;
                };
                let way = Way {
                    rules: Arc::clone(&ruled),
                    met: tell.clone(),
                    lose: Arc::clone(&told),
                    unanswered: AtomicBool::new(false),
                };
                opened.lock().expect("whole").push(twin(&near));
                way.open(near, far);
            }
        });
        Self {
            url,
            rules,
            open,
            met,
            lose,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// From now on these rules hold; what was met before is forgotten.
    pub(crate) fn rule(&self, rules: &[(&'static str, Fate)]) {
        *self.rules.lock().expect("whole") = rules.to_vec();
        while self.met.try_recv().is_ok() {}
    }

    /// Breaks all connections.
    pub(crate) fn break_all(&self) {
        for near in self.open.lock().expect("whole").drain(..) {
            let _ = near.shutdown(Shutdown::Both);
        }
    }

    /// Waits until a request has met its fate: it was cut, or its answer has come and is held.
    pub(crate) fn met(&self) {
        self.met.recv_timeout(PATIENCE).expect("a request");
    }

    /// Loses an answer that is held, or the next one.
    pub(crate) fn lose(&self) {
        self.lose.send(()).expect("a gate");
    }
}

impl Way {
    fn open(self, near: TcpStream, far: TcpStream) {
        let up = Arc::new(self);
        let down = Arc::clone(&up);
        let (near_too, far_too) = (twin(&near), twin(&far));
        std::thread::spawn(move || carry(near, far, |bytes| up.lets_up(bytes)));
        std::thread::spawn(move || carry(far_too, near_too, |_| down.lets_down()));
    }

    fn lets_up(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let rules = self.rules.lock().expect("whole");
        let rule = rules.iter().find(|(words, _)| text.contains(words));
        match rule.map(|(_, fate)| fate) {
            None => true,
            Some(Fate::Unanswered) => {
                self.unanswered.store(true, Ordering::SeqCst);
                true
            }
            Some(Fate::Cut) => {
                let _ = self.met.send(());
                false
            }
        }
    }

    fn lets_down(&self) -> bool {
        if !self.unanswered.load(Ordering::SeqCst) {
            return true;
        }
        let _ = self.met.send(());
        let _ = self.lose.lock().expect("whole").recv();
        false
    }
}

/// Carries bytes until one end is gone or they are not let through; then both ends are.
fn carry(mut from: TcpStream, mut to: TcpStream, lets: impl Fn(&[u8]) -> bool) {
    let mut some = vec![0; 64 << 10];
    while let Ok(length) = from.read(&mut some) {
        if length == 0 || !lets(&some[..length]) || to.write_all(&some[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn twin(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a twin")
}
