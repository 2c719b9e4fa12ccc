//! Programs with a dialogue on their standard streams, under a guard of the real binary.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnwire_event::code::StopOutcome;
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms};
use turnwire_tool::guard::frame::ProgramExit;
use turnwire_tool::runner::PipedProgram;

use crate::workshop::{GRACE, Shop, WITHIN};

#[tokio::test]
async fn interactive_program_ends_when_its_input_ends() {
    let shop = Shop::with_grace(WITHIN);
    let spec = shop.spec(&["cat"]);
    let PipedProgram {
        mut input,
        mut output,
        mut program,
    } = shop.workshop.pipe(spec).await.expect("a guard");
    let mut answer = [0; 6];
    for word in [b"hello\n", b"again\n"] {
        input.write_all(word).await.expect("it listens");
        output.read_exact(&mut answer).await.expect("it answers");
        assert_eq!(&answer, word);
    }
    // Far more than a pipe holds, both ways at once.
    let much = vec![b'x'; 1_000_000];
    let write = async {
        input.write_all(&much).await.expect("it listens");
        drop(input);
    };
    let mut back = Vec::new();
    let (_, read) = tokio::join!(write, output.read_to_end(&mut back));
    read.expect("it answers");
    assert_eq!(back.len(), much.len());
    let done = program.finished().await;
    assert_eq!(
        (done.end.exit, done.end.killed),
        (ProgramExit::Code(0), false)
    );
}

// S3-074
#[tokio::test]
async fn program_ignoring_input_end_is_ended_within_grace() {
    for kind in [
        StubbornKind::Silent,
        StubbornKind::IgnoresTerm,
        StubbornKind::Escapee,
        StubbornKind::Grandchild,
    ] {
        let (shop, programs) = (Shop::open(), StubbornPrograms::new());
        let spec = shop.spec(&programs.command(kind));
        let piped = shop.workshop.pipe(spec).await.expect("a guard");
        programs.until_ready(kind.processes()).await;
        let since = Instant::now();
        drop(piped.input);
        let outcome = piped.program.ended().await;
        assert_eq!(programs.processes(), [0; 0], "{kind:?}");
        let expected = match kind {
            StubbornKind::Silent => StopOutcome::Stopped,
            _ => StopOutcome::Killed,
        };
        assert_eq!(outcome, expected, "{kind:?}");
        assert!(since.elapsed() >= GRACE / 2, "it had time to go by itself");
    }
}

// S3-074
#[tokio::test]
async fn handle_ends_program_while_streams_are_held() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let spec = shop.spec(&programs.command(StubbornKind::Grandchild));
    let piped = shop.workshop.pipe(spec).await.expect("a guard");
    programs.until_ready(3).await;
    let ended = piped.program.ended();
    let (input, mut output) = (piped.input, piped.output);
    drop(piped.program);
    assert_eq!(ended.await, StopOutcome::Killed);
    assert_eq!(programs.processes(), [0; 0]);
    let mut api = Vec::new();
    output.read_to_end(&mut api).await.expect("its end");
    drop(input);
}

//
#[tokio::test]
async fn program_reading_nothing_ends_when_server_lets_go() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let spec = shop.spec(&programs.command(StubbornKind::IgnoresTerm));
    let mut piped = shop.workshop.pipe(spec).await.expect("a guard");
    programs.until_ready(1).await;
    // Until all pipes on the way are full.
    let much = vec![b'x'; 1_000_000];
    let full = tokio::time::timeout(Duration::from_secs(1), piped.input.write_all(&much)).await;
    assert!(full.is_err(), "nobody takes it");
    let ended = piped.program.ended();
    drop(piped.input);
    assert_eq!(ended.await, StopOutcome::Killed);
    assert_eq!(programs.processes(), [0; 0]);
}

#[tokio::test]
async fn missing_program_is_reported_and_output_ends() {
    let shop = Shop::open();
    let spec = shop.spec(&["no-such-program"]);
    let mut piped = shop.workshop.pipe(spec).await.expect("a guard");
    let mut api = Vec::new();
    piped.output.read_to_end(&mut api).await.expect("its end");
    assert_eq!(api, [0; 0]);
    assert_eq!(
        piped.program.finished().await.end.exit,
        ProgramExit::MissingProgram
    );
}

#[tokio::test]
async fn endless_standard_error_blocks_nobody() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let script = programs.write("loud", "ready; yes \"$MARK\" >&2 & cat; kill $!; wait");
    let spec = shop.spec(&turnwire_testkit::stubborn::shell(&script));
    let mut piped = shop.workshop.pipe(spec).await.expect("a guard");
    programs.until_ready(1).await;
    piped.input.write_all(b"hello").await.expect("it listens");
    let mut answer = [0; 5];
    piped
        .output
        .read_exact(&mut answer)
        .await
        .expect("it answers");
    drop(piped.input);
    piped.program.finished().await;
    assert_eq!(programs.processes(), [0; 0]);
}
