//! Replays events from a file or from standard input.
//!
//! A line is an event as JSON, a page of events (`{"events": […]}`), or a frame of the session
//! wire. Empty lines and frames without an event are skipped. An error names the file and the line.

use std::collections::HashMap;
use std::io::{BufRead, Read as _, Write};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnwire_event::{Event, Position, SessionId};

use super::projection::WireProjection;

/// The maximum length of a line: that of the largest page of events that a server sends.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Projects every event of `input`, line by line, and writes the frames to `out`. `name` is the
/// file name for errors.
pub(crate) fn replay(
    name: &str,
    input: &mut impl BufRead,
    projection: &mut WireProjection,
    out: &mut impl Write,
) -> Result<()> {
    let mut last_positions = HashMap::new();
    let mut line = Vec::new();
    for line_number in 1u64.. {
        line.clear();
        let location = || format!("{name}:{line_number}");
        let length = input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let length = length.with_context(location)?;
        if length == 0 {
            break;
        }
        ensure!(
            (length as u64) < LINE_BYTES_MAX,
            "{name}:{line_number}: the line is longer than {LINE_BYTES_MAX} bytes"
        );
        let mut bytes = Vec::new();
        for raw in events_of_line(&line).with_context(location)? {
            let stored = raw.get().as_bytes();
            let event = Event::read(stored).with_context(location)?;
            check_order(&mut last_positions, &event).with_context(location)?;
            projection.project(stored, &event, &mut bytes);
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// The fields of a line that tell an event, a page and a frame apart.
#[derive(Deserialize)]
struct LineShape<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Option<Vec<&'a RawValue>>,
}

/// The JSON of each event on a line; empty for an empty line and for a frame without an event.
fn events_of_line(line: &[u8]) -> Result<Vec<&RawValue>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(Vec::new());
    }
    let shape: LineShape<'_> =
        serde_json::from_slice(line).context("not a JSON object on one line")?;
    Ok(match (shape.kind.as_deref(), shape.event, shape.events) {
        (None, None, Some(events)) => events,
        (Some("event"), Some(event), None) => vec![event],
        // Frames of the session wire that contain no event.
        (
            Some(
                "snapshot" | "subscribe_ack" | "subscribe_error" | "cancel_ack" | "cancel_error"
                | "ping" | "pong",
            ),
            None,
            None,
        ) => Vec::new(),
        _ => vec![serde_json::from_slice(line)?],
    })
}

/// Fails if `event` is not after the previous event of its session, which `last_positions` has, and
/// stores the position of `event` there.
fn check_order(last_positions: &mut HashMap<SessionId, Position>, event: &Event) -> Result<()> {
    match last_positions.insert(event.session_id, event.id) {
        Some(previous) if previous >= event.id => {
            let id = event.id;
            bail!("{id} comes after {previous}; the events of a session must be in order")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_texts(line: &str) -> Vec<String> {
        let events = events_of_line(line.as_bytes()).expect("a line");
        events.iter().map(|raw| raw.get().to_owned()).collect()
    }

    #[test]
    fn line_is_an_event_a_frame_or_a_page() {
        let event = r#"{"id" : "evt_1","type":"text.delta"}"#;
        assert_eq!(event_texts(&format!(" {event} \r\n")), [event]);
        assert_eq!(
            event_texts(&format!("{{\"type\":\"event\",\"event\":{event}}}")),
            [event]
        );
        let page = format!("{{\"events\":[{event},{event}],\"next\":null}}");
        assert_eq!(event_texts(&page), [event, event]);
        assert_eq!(event_texts("\n"), [""; 0]);
        assert_eq!(event_texts(r#"{"type":"snapshot","messages":[]}"#), [""; 0]);
        for bad in ["{", "[1]", "7", "{\"type\":1}", "\u{feff}{}"] {
            assert!(events_of_line(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
