//! Frames that are written and read again, and bytes that are not a frame.

use super::*;

fn again(frame: &GuardFrame) -> Option<GuardFrame> {
    let bytes = frame.to_bytes();
    let head = bytes[..HEAD_BYTES].try_into().expect("a head");
    let (tag, length) = GuardFrame::head(head)?;
    assert_eq!(bytes.len(), HEAD_BYTES + length);
    GuardFrame::read(tag, bytes[HEAD_BYTES..].to_vec())
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
fn invalid_heads_are_rejected_before_allocation() {
    assert_eq!(GuardFrame::head([9, 1, 0, 0, 0]), None);
    assert_eq!(GuardFrame::head([1, 255, 255, 255, 255]), None);
    assert_eq!(GuardFrame::read(0, b"{}".to_vec()), None);
    assert_eq!(GuardFrame::read(3, b"nonsense".to_vec()), None);
    assert_eq!(GuardFrame::read(4, Vec::new()), None);
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
