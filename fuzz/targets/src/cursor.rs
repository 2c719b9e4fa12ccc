//! The positions that clients send: `Last-Event-ID`, `since` of a subscribe, pages of a list.

use turnwire_event::{Position, SessionId};
use turnwire_wire::pc3::FrameCursor;

/// A text of a client as a position and as the id of a frame.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok(position) = text.parse::<Position>() {
        assert_eq!(
            position.to_string(),
            text,
            "a position is written in one way"
        );
        let mut bytes = Vec::new();
        position.write(&mut bytes);
        assert_eq!(bytes, text.as_bytes());
    }
    if let Ok(session) = text.parse::<SessionId>() {
        assert_eq!(session.to_string().parse(), Ok(session));
    }
    let Ok(cursor) = text.parse::<FrameCursor>() else {
        return;
    };
    assert_eq!(cursor.to_string(), text, "a cursor is written in one way");
    let start = cursor.replay_start();
    assert!(start <= cursor.position, "a replay starts after the cursor");
    assert!(cursor.covers(start, 0), "a replay repeats what is covered");
    if let Some(frame) = cursor.frame {
        assert!(cursor.covers(cursor.position, frame));
        assert!(!cursor.covers(cursor.position, frame + 1));
    }
}
