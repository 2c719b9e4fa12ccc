//! Server-sent events of others: the same blocks, however the network cuts the bytes.

use turnwire_dial::{SseError, SseLimits, SseReader};

use crate::chunk::{chunks, planned};

/// Small enough that an input can exceed them.
const LIMITS: SseLimits = SseLimits {
    line_bytes_max: 256,
    event_bytes_max: 1_024,
    stream_bytes_max: 8_192,
};

/// A block with owned fields: event, data, id, retry.
type Block = (Option<String>, Option<String>, Option<String>, Option<u64>);

/// A stream, whose first byte says how it is cut.
pub(crate) fn run(input: &[u8]) {
    let (plan, stream) = planned(input);
    let (blocks, error) = read(&[stream]);
    let cut = read(&chunks(stream, plan.max(1)));
    // A limit may be noticed a piece earlier or later; what is read before is the same.
    match (&error, &cut.1) {
        (None, None) => assert_eq!(cut.0, blocks),
        _ => {
            let common = blocks.len().min(cut.0.len());
            assert_eq!(cut.0[..common], blocks[..common]);
        }
    }
    for (event, data, id, _) in &blocks {
        let texts = [event, data, id].into_iter().flatten();
        let bytes: usize = texts.map(String::len).sum();
        assert!(bytes <= LIMITS.event_bytes_max, "{bytes} bytes in a block");
        assert!(
            !id.as_ref()
                .is_some_and(|id| id.contains(['\0', '\n', '\r']))
        );
    }
}

fn read(chunks: &[&[u8]]) -> (Vec<Block>, Option<SseError>) {
    let mut reader = SseReader::new(LIMITS);
    let mut blocks = Vec::new();
    for chunk in chunks {
        let mut unread = *chunk;
        loop {
            match reader.next_block(&mut unread) {
                Ok(None) => break,
                Err(error) => return (blocks, Some(error)),
                Ok(Some(block)) => blocks.push((
                    block.event.map(str::to_owned),
                    block.data.map(str::to_owned),
                    block.id.map(str::to_owned),
                    block.retry_ms,
                )),
            }
        }
    }
    (blocks, None)
}
