//! The second stage: a process that binds itself and then becomes the program. What is bound here
//! cannot be bound from outside in time, and not by the guard for itself.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::frame::How;
use super::order::Limits;

/// What a shell says when there is no such program; together with the token nobody else can.
const NO_PROGRAM: u8 = 127;

/// The words of the second stage: `token guard limits program args…`. The token is known to the
/// guard alone, and to this process only until the program takes its place.
pub(super) fn words(token: &str, limits: &Limits, program: &str, args: &[String]) -> Vec<OsString> {
    let limits = serde_json::to_string(limits).unwrap_or_default();
    let guard = std::process::id().to_string();
    let mut words: Vec<OsString> = [token, &guard, &limits, program].map(OsString::from).into();
    words.extend(args.iter().map(OsString::from));
    words
}

/// Becomes the program, or says on the standard error why not.
pub(super) fn become_program(words: &[OsString]) -> ExitCode {
    let [token, guard, limits, program, args @ ..] = words else {
        return ExitCode::from(super::USAGE);
    };
    let (Some(token), Some(guard), Some(limits)) =
        (token.to_str(), guard.to_str(), limits.to_str())
    else {
        return ExitCode::from(super::USAGE);
    };
    let Ok(limits) = serde_json::from_str(limits) else {
        return ExitCode::from(super::USAGE);
    };
    if bind(guard).is_err() {
        return failed(token, How::Refused);
    }
    let mut command = Command::new(program);
    command.args(args);
    // The last thing: this process itself may need more than the program is given.
    if limit(&limits).is_err() {
        return failed(token, How::Refused);
    }
    let how = match command.exec().kind() {
        io::ErrorKind::NotFound => How::MissingProgram,
        _ => How::Refused,
    };
    failed(token, how)
}

fn failed(token: &str, how: How) -> ExitCode {
    let how = serde_json::to_string(&how).unwrap_or_default();
    let _ = write!(io::stderr(), "{token}{how}");
    ExitCode::from(NO_PROGRAM)
}

/// What the second stage said, if this is its word and not the program's.
pub(super) fn said(token: &str, how: How, error_output: &[u8]) -> Option<How> {
    if how != How::Code(i32::from(NO_PROGRAM)) {
        return None;
    }
    serde_json::from_slice(error_output.strip_prefix(token.as_bytes())?).ok()
}

/// This process dies with the guard, gains no rights, and is the first to go when memory is short.
#[cfg(target_os = "linux")]
fn bind(guard: &str) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Had the guard died before that line, nothing would tell.
    let parent = getppid().map(|parent| parent.as_raw_nonzero().to_string());
    if parent.as_deref() != Some(guard) {
        return Err(io::ErrorKind::NotFound.into());
    }
    // A program with other rights than its caller's would forget whose death is its own.
    rustix::thread::set_no_new_privs(true)?;
    // It may be forbidden, and then the system chooses.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn bind(_: &str) -> io::Result<()> {
    Ok(())
}

/// Not the number of processes: the system counts all of a user together, threads and what other
/// programs and other containers have, so that a program would fail for what others do. The guard
/// counts them.
fn limit(limits: &Limits) -> io::Result<()> {
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Cpu, limits.cpu_s),
        (Resource::As, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.files),
    ];
    for (resource, most) in wanted {
        let Some(most) = most else { continue };
        // Nobody may give more than there is.
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |max| max.min(most));
        let both = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, both)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_stage_can_say_that_there_is_no_program() {
        let gone = How::Code(127);
        let told = br#"token"missing_program""#;
        assert_eq!(said("token", gone, told), Some(How::MissingProgram));
        assert_eq!(said("other", gone, told), None);
        assert_eq!(said("token", How::Code(1), told), None);
        assert_eq!(said("token", gone, b"sh: not found"), None);
        assert_eq!(said("token", gone, b"token"), None);
    }
}
