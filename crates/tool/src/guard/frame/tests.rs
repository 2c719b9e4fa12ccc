//! Frames there and back, and nonsense.

use super::*;

fn again(frame: &Frame) -> Result<Frame, Garbled> {
    let bytes = frame.to_bytes();
    let head = bytes[..HEAD_BYTES].try_into().expect("a head");
    let (tag, length) = Frame::head(head)?;
    assert_eq!(bytes.len(), HEAD_BYTES + length);
    Frame::read(tag, bytes[HEAD_BYTES..].to_vec())
}

#[test]
fn a_frame_is_read_as_it_was_written() {
    let end = |how| {
        Frame::End(End {
            how,
            asked: true,
            killed: false,
            crowd: false,
            cut: true,
            left: 3,
            ms: 17,
        })
    };
    let frames = [
        Frame::Start(Start { pid: 4_000_000 }),
        Frame::Output(Vec::new()),
        Frame::Output(vec![0, 255, 10]),
        Frame::ErrorOutput(b"oh".to_vec()),
        end(How::Code(3)),
        end(How::Signal(9)),
        end(How::MissingProgram),
        end(How::MissingFolder),
        end(How::Refused),
    ];
    for frame in frames {
        assert_eq!(again(&frame), Ok(frame));
    }
}

#[test]
fn nonsense_is_refused_before_anything_is_kept_for_it() {
    assert_eq!(Frame::head([9, 1, 0, 0, 0]), Err(Garbled));
    assert_eq!(Frame::head([1, 255, 255, 255, 255]), Err(Garbled));
    assert_eq!(Frame::read(0, b"{}".to_vec()), Err(Garbled));
    assert_eq!(Frame::read(3, b"nonsense".to_vec()), Err(Garbled));
    assert_eq!(Frame::read(4, Vec::new()), Err(Garbled));
}

#[test]
fn r_17_an_end_says_whether_asking_was_enough() {
    let end = End::unstarted(How::Code(0));
    assert_eq!(end.outcome(), StopOutcome::Finished);
    let asked = End { asked: true, ..end };
    assert_eq!(asked.outcome(), StopOutcome::Stopped);
    let killed = End {
        killed: true,
        ..asked
    };
    assert_eq!(killed.outcome(), StopOutcome::Killed);
}
