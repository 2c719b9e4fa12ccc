//! Doctored snapshots (I5, law 4).

use super::*;

fn snapshots(expected: &[&str], edit_fixture: impl Fn(&mut serde_json::Value) -> bool) {
    for seed in SEEDS {
        let mut history = with_clients(&mut SessionFixture::new(seed));
        let mut doctored = false;
        for connection in &mut history.connections {
            for line in &mut connection.lines {
                if let ConnectionEntry::Received(frame) = line
                    && frame.text.starts_with("{\"type\":\"snapshot\"")
                {
                    let mut value = serde_json::from_str(&frame.text).expect("a snapshot");
                    doctored |= edit_fixture(&mut value);
                    frame.text = value.to_string();
                }
            }
        }
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(
            names(&history),
            if doctored { expected } else { BTreeSet::new() },
            "seed {seed}"
        );
    }
}

// I5
#[test]
fn wrong_snapshot_summary_is_reported() {
    snapshots(&["SnapshotDiffers"], |snapshot| {
        snapshot["session"]["turn_count"] = 99.into();
        true
    });
}

// I5
#[test]
fn message_missing_from_snapshot_is_reported() {
    snapshots(&["SnapshotDiffers"], |snapshot| {
        let messages = snapshot["messages"].as_array_mut().expect("a list");
        let index = messages.iter().position(|m| m["role"] == "user");
        index.map(|at| messages.remove(at)).is_some()
    });
}

// I5
#[test]
fn snapshot_and_later_deltas_mismatch_is_reported() {
    snapshots(&["TextDiffers", "SnapshotDiffers"], |snapshot| {
        let messages = snapshot["messages"].as_array_mut().expect("a list");
        let open = messages.iter_mut().find(|m| m["status"] == "in_progress");
        let block = open
            .and_then(|m| m["content"].as_array_mut())
            .and_then(|c| c.first_mut());
        block.map(|block| block["text"] = "x".into()).is_some()
    });
}
