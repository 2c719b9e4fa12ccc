//! The events of a file: a JSON event per line, or a page of them, or frames of the session wire.
//! An error names its line.

use std::collections::HashMap;
use std::io::{BufRead, Read as _, Write};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnwire_event::{Event, Position, SessionId};

use super::projection::WireProjection;

/// The longest line: the largest page of events that a server sends.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Projects every event of a file in the order of its lines.
pub(crate) fn replay(
    name: &str,
    lines: &mut impl BufRead,
    projection: &mut WireProjection,
    out: &mut impl Write,
) -> Result<()> {
    let mut last = HashMap::new();
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let place = || format!("{name}:{number}");
        let length = lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let length = length.with_context(place)?;
        if length == 0 {
            break;
        }
        ensure!(
            (length as u64) < LINE_BYTES_MAX,
            "{name}:{number}: the line is longer than {LINE_BYTES_MAX} bytes"
        );
        let mut bytes = Vec::new();
        for raw in events(&line).with_context(place)? {
            let stored = raw.get().as_bytes();
            let event = Event::read(stored).with_context(place)?;
            check_order(&mut last, &event).with_context(place)?;
            projection.project(stored, &event, &mut bytes);
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// The fields that distinguish the kinds of lines.
#[derive(Deserialize)]
struct LineShape<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Option<Vec<&'a RawValue>>,
}

/// The events of a line.
fn events(line: &[u8]) -> Result<Vec<&RawValue>> {
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
        (Some("snapshot" | "subscribe_ack" | "subscribe_error" | "ping" | "pong"), None, None) => {
            Vec::new()
        }
        _ => vec![serde_json::from_slice(line)?],
    })
}

/// Fails if `event` is not after the last event of its session.
fn check_order(last: &mut HashMap<SessionId, Position>, event: &Event) -> Result<()> {
    match last.insert(event.session_id, event.id) {
        Some(before) if before >= event.id => bail!("{} comes after {before}", event.id),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let events = events(line.as_bytes()).expect("a line");
        events.iter().map(|raw| raw.get().to_owned()).collect()
    }

    #[test]
    fn line_is_an_event_a_frame_or_a_page() {
        let event = r#"{"id" : "evt_1","type":"text.delta"}"#;
        assert_eq!(texts(&format!(" {event} \r\n")), [event]);
        assert_eq!(
            texts(&format!("{{\"type\":\"event\",\"event\":{event}}}")),
            [event]
        );
        let page = format!("{{\"events\":[{event},{event}],\"next\":null}}");
        assert_eq!(texts(&page), [event, event]);
        assert_eq!(texts("\n"), [""; 0]);
        assert_eq!(texts(r#"{"type":"snapshot","messages":[]}"#), [""; 0]);
        for bad in ["{", "[1]", "7", "{\"type\":1}", "\u{feff}{}"] {
            assert!(events(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
