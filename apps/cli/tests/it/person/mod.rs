//! Someone who talks with the binary: types, reads both outputs as they come, presses Ctrl-C.

use std::fs::File;
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use turnwire_event::SessionId;

use crate::server::{BINARY, PATIENCE, Server};

/// What the server says.
pub(crate) const SCRIPT: &str = r#"
- {when: {user: '^slow'}, steps: [{text: "word word word word ", delay_ms: 20}, {stall: true}]}
- {when: {user: '^think'}, steps: [{thinking: "two and\ntwo is four", signature: seal}, {text: "four"}]}
- {when: {user: '^tool'}, steps: [{tool: {name: echo, input: {text: x}}}, {text: "done"}]}
- {when: {user: '^sleep'}, steps: [{tool: {name: sleep, input: {ms: 60000}}}, {text: "done"}]}
- {when: {user: '^error'}, steps: [{text: "a"}, {error: internal}]}
- {when: {user: '^wide'}, steps: [{text: "wonderful ", chunk: 4, repeat: 40}, {text: "THE END."}]}
- {when: {user: '^paint'}, steps: [{text: "\e[31mred\e]0;title\a dot"}]}
- {steps: [{text: "you said {{user}}"}]}
"#;

/// A server of a new folder.
pub(crate) fn start() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    (dir, server)
}

/// The session that `chat` says how to come back to.
pub(crate) fn session(stderr: &str) -> SessionId {
    let id = stderr.split("--session ").nth(1).expect("a way back");
    id.split_whitespace()
        .next()
        .expect("an id")
        .parse()
        .expect("an id")
}

/// How it ended.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// One output, collected by a thread.
struct Output {
    bytes: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// What was waited for already.
    read: usize,
}

impl Output {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let (send, bytes) = channel();
        std::thread::spawn(move || {
            let mut some = vec![0; 4096];
            // A terminal whose other end is gone answers with an error.
            while let Ok(length) = from.read(&mut some) {
                if length == 0 || send.send(some[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            bytes,
            seen: Vec::new(),
            read: 0,
        }
    }

    /// Waits until `text` comes, after what was waited for before.
    fn until(&mut self, text: &str) {
        let begun = Instant::now();
        loop {
            let rest = &self.seen[self.read..];
            let found = rest.windows(text.len()).position(|w| w == text.as_bytes());
            if let Some(at) = found {
                self.read += at + text.len();
                return;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.bytes.recv_timeout(left) {
                Ok(more) => self.seen.extend(more),
                Err(_) => panic!("no {text:?} in {:?}", String::from_utf8_lossy(&self.seen)),
            }
        }
    }

    /// Waits until `text` comes, and returns what came before it.
    fn before(&mut self, text: &str) -> String {
        let from = self.read;
        self.until(text);
        let before = &self.seen[from..self.read - text.len()];
        String::from_utf8_lossy(before).into_owned()
    }

    /// Everything, to the end.
    fn all(mut self) -> String {
        self.seen.extend(self.bytes.iter().flatten());
        String::from_utf8(self.seen).expect("text")
    }
}

/// Someone behind pipes.
pub(crate) struct Person {
    child: Child,
    out: Option<Output>,
    err: Option<Output>,
}

impl Person {
    /// Runs `turnwire chat` with a server.
    pub(crate) fn at(server: &Server, args: &[&str]) -> Self {
        let mut child = command(server, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let out = child.stdout.take().map(Output::of);
        let err = child.stderr.take().map(Output::of);
        Self { child, out, err }
    }

    /// Runs `turnwire chat` to its end with another output than a pipe that is read.
    pub(crate) fn writing_to(server: &Server, args: &[&str], out: impl Into<Stdio>) -> Done {
        let done = command(server, args)
            .stdin(Stdio::null())
            .stdout(out)
            .output()
            .expect("the binary runs");
        Done {
            code: done.status.code(),
            out: String::new(),
            err: String::from_utf8(done.stderr).expect("text"),
        }
    }

    pub(crate) fn says(&mut self, text: &str) {
        self.pipes(text.as_bytes());
    }

    fn pipes(&mut self, bytes: &[u8]) {
        let stdin = self.child.stdin.as_mut().expect("an open input");
        // One that leaves early does not read on.
        let _ = stdin.write_all(bytes);
    }

    /// Runs `turnwire chat` to its end on an input that need not be text.
    pub(crate) fn says_bytes(server: &Server, bytes: &[u8]) -> Done {
        let mut person = Self::at(server, &[]);
        person.pipes(bytes);
        person.done()
    }

    pub(crate) fn out(&mut self, text: &str) {
        self.out.as_mut().expect("a pipe").until(text);
    }

    pub(crate) fn err(&mut self, text: &str) {
        self.err.as_mut().expect("a pipe").until(text);
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    /// Ends the input and waits for the end.
    pub(crate) fn done(mut self) -> Done {
        drop(self.child.stdin.take());
        self.done_without_end_of_input()
    }

    /// Waits for the end.
    pub(crate) fn done_without_end_of_input(mut self) -> Done {
        let input = self.child.stdin.take();
        let out = self.out.take().expect("a pipe").all();
        let err = self.err.take().expect("a pipe").all();
        let code = self.child.wait().expect("gone").code();
        drop(input);
        Done { code, out, err }
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `turnwire chat` to its end.
pub(crate) fn ask(server: &Server, args: &[&str], input: &str) -> Done {
    let mut person = Person::at(server, args);
    person.says(input);
    person.done()
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(child: &Child, which: Signal) {
    kill_process(Pid::from_child(child), which).expect("it is there");
}

/// `turnwire chat` with a server, without a history from elsewhere.
pub(crate) fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("chat");
    if !args.contains(&"--server") {
        command.arg("--server").arg(server.url());
    }
    command
        .args(args)
        .env("TERM", "xterm")
        .env("XDG_STATE_HOME", "/dev/null")
        .env_remove("NO_COLOR");
    command
}

/// Someone at a terminal.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    screen: Output,
}

impl Terminal {
    /// Runs `turnwire chat` on a terminal of its own.
    pub(crate) fn at(server: &Server, args: &[&str]) -> Self {
        Self::running(command(server, args))
    }

    /// Runs another command on a terminal of its own.
    pub(crate) fn running(command: Command) -> Self {
        Self::narrow(command, 0)
    }

    /// The same, on a terminal of so many columns; 0 for one that does not tell.
    pub(crate) fn narrow(mut command: Command, columns: u16) -> Self {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&near).expect("ours");
        unlockpt(&near).expect("open");
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        if columns > 0 {
            tcsetwinsize(&near, size).expect("a size");
        }
        let name = ptsname(&near, Vec::new()).expect("its name");
        let name = name.into_string().expect("text");
        let open = || File::options().read(true).write(true).open(&name);
        let far = || Stdio::from(open().expect("the other end"));
        let child = command
            .stdin(far())
            .stdout(far())
            .stderr(far())
            .spawn()
            .expect("the binary runs");
        let keys = File::from(near);
        let screen = Output::of(keys.try_clone().expect("the same end"));
        Self {
            child,
            keys,
            screen,
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("typed");
    }

    pub(crate) fn sees(&mut self, text: &str) {
        self.screen.until(text);
    }

    /// What is shown until `text` comes.
    pub(crate) fn reads(&mut self, text: &str) -> String {
        self.screen.before(text)
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    /// Waits for the end.
    pub(crate) fn done(mut self) -> Option<i32> {
        self.child.wait().expect("gone").code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
