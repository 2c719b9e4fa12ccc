//! One connection that is watched: a WebSocket, or the stream of a turn.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use crate::frame::{self, FrameCounter};
use crate::sse;

/// How its bytes are cut.
#[derive(Debug)]
enum ByteFormat {
    Frames(FrameCounter),
    Blocks(sse::BlockCounter),
}

/// A watched connection: a WebSocket or a chat stream.
#[derive(Debug)]
pub struct Watcher {
    stream: TcpStream,
    cut: ByteFormat,
    /// Text frames so far, the ack included; or blocks of a stream.
    pub frames: u64,
    pub bytes: u64,
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Watcher {
    /// A WebSocket that keeps the first `keep` bytes of each frame for the caller to look at.
    pub fn new(stream: TcpStream, keep: usize) -> io::Result<Self> {
        Self::cut(stream, ByteFormat::Frames(FrameCounter::new(keep)))
    }

    /// The stream of a turn, from the first byte of the answer on.
    pub fn of_blocks(stream: TcpStream) -> io::Result<Self> {
        Self::cut(stream, ByteFormat::Blocks(sse::BlockCounter::default()))
    }

    fn cut(stream: TcpStream, cut: ByteFormat) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            cut,
            frames: 0,
            bytes: 0,
        })
    }

    /// Sends a frame made by `subscribe_frame`.
    pub fn subscribe(&mut self, subscribe: &[u8]) -> io::Result<()> {
        self.stream.write_all(subscribe)
    }

    /// Reads once what is there; `seen` gets the first bytes of each whole text frame.
    pub fn read(&mut self, buffer: &mut [u8], mut seen: impl FnMut(&[u8])) -> io::Result<()> {
        let len = match self.stream.read(buffer) {
            Ok(0) => return Err(io::Error::other("the server hung up")),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        self.bytes += len as u64;
        let counter = match &mut self.cut {
            ByteFormat::Frames(counter) => counter,
            ByteFormat::Blocks(counter) => {
                self.frames += counter.feed(&buffer[..len])?;
                return Ok(());
            }
        };
        let mut closed = None;
        let frames = &mut self.frames;
        counter.feed(&buffer[..len], |opcode, prefix| match opcode {
            frame::TEXT => {
                *frames += 1;
                seen(prefix);
            }
            frame::CLOSE => closed = Some(String::from_utf8_lossy(prefix).into_owned()),
            _ => {}
        });
        match closed {
            None => Ok(()),
            Some(reason) => Err(io::Error::other(format!("closed by the server: {reason}"))),
        }
    }
}
