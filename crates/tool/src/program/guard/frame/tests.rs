//! Frames that are written and read again, and bytes that are not a frame.

use super::*;

fn again(frame: &GuardFrame) -> Option<GuardFrame> {
    let bytes = frame.to_bytes();
    let length = u32::from_le_bytes(bytes[TAG_BYTES..HEAD_BYTES].try_into().expect("a length"));
    assert_eq!(bytes.len(), HEAD_BYTES + length as usize);
    GuardFrame::read(&bytes)
}

#[test]
fn frames_round_trip() {
    let end = |exit| {
        GuardFrame::End(ProgramEnded {
            exit,
            requested: true,
            killed: false,
            too_many_processes: false,
            truncated: true,
            descendants: 3,
            duration_ms: 17,
        })
    };
    let frames = [
        GuardFrame::Start(ProgramStarted { pid: 4_000_000 }),
        GuardFrame::Output(Vec::new()),
        GuardFrame::Output(vec![0, 255, 10]),
        GuardFrame::ErrorOutput(b"oh".to_vec()),
        end(ProgramExit::Code(3)),
        end(ProgramExit::Signal(9)),
        end(ProgramExit::MissingProgram),
        end(ProgramExit::MissingFolder),
        end(ProgramExit::Refused),
    ];
    for frame in frames {
        assert_eq!(again(&frame), Some(frame));
    }
}

#[test]
fn bytes_that_are_not_a_frame_are_rejected() {
    for bytes in [&b""[..], b"\x01\0\0\0", b"\x09\x01\0\0\0x", b"\x04\0\0\0\0"] {
        assert_eq!(GuardFrame::read(bytes), None, "{bytes:?}");
    }
    assert_eq!(GuardFrame::read(b"\0\x02\0\0\0{}"), None);
    assert_eq!(GuardFrame::read(b"\x03\x08\0\0\0nonsense"), None);
}

//
#[test]
fn outcome_says_whether_killing_was_needed() {
    let end = ProgramEnded::unstarted(ProgramExit::Code(0));
    assert_eq!(end.outcome(), StopOutcome::Finished);
    let asked = ProgramEnded {
        requested: true,
        ..end
    };
    assert_eq!(asked.outcome(), StopOutcome::Stopped);
    let killed = ProgramEnded {
        killed: true,
        ..asked
    };
    assert_eq!(killed.outcome(), StopOutcome::Killed);
}
