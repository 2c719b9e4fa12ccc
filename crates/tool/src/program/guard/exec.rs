//! The process that limits itself and then executes the program. These limits cannot be set from
//! outside in time, and the guard must not have them itself.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::frame::ProgramExit;
#[cfg(target_os = "linux")]
use super::inspection::drop_inspection_privileges;
use super::order::{GuardOrder, ProgramLimits};

/// The exit code of a shell for a missing program. Together with the token only this process can
/// send it.
const NO_PROGRAM: u8 = 127;

/// The arguments of this process: `token guard limits program args…`. Only the guard knows the
/// token, and this process until it executes the program.
pub(super) fn arguments(token: &str, order: &GuardOrder) -> Vec<OsString> {
    let limits = serde_json::to_string(&order.limits).unwrap_or_default();
    let guard = std::process::id().to_string();
    let own = [token, &guard, &limits, &order.program].map(OsString::from);
    let args = order.args.iter().map(OsString::from);
    own.into_iter().chain(args).collect()
}

/// Executes the program, or writes the reason to standard error.
pub(super) fn become_program(args: &[OsString]) -> ExitCode {
    let [token, guard, limits, program, args @ ..] = args else {
        return ExitCode::from(super::EXIT_USAGE);
    };
    let limits = limits.to_str().map(serde_json::from_str);
    let (Some(token), Some(guard), Some(Ok(limits))) = (token.to_str(), guard.to_str(), limits)
    else {
        return ExitCode::from(super::EXIT_USAGE);
    };
    if bind(guard).is_err() {
        return failed(token, ProgramExit::Refused);
    }
    let mut command = Command::new(program);
    command.args(args);
    // Last, because this process may need more than the limits of the program.
    if set_limits(&limits).is_err() {
        return failed(token, ProgramExit::Refused);
    }
    let exit = match command.exec().kind() {
        io::ErrorKind::NotFound => ProgramExit::MissingProgram,
        _ => ProgramExit::Refused,
    };
    failed(token, exit)
}

fn failed(token: &str, exit: ProgramExit) -> ExitCode {
    let exit = serde_json::to_string(&exit).unwrap_or_default();
    let _ = write!(io::stderr(), "{token}{exit}");
    ExitCode::from(NO_PROGRAM)
}

/// Why the program was not executed, if `error_output` is from this process and not from the
/// program.
pub(super) fn exec_failure(
    token: &str,
    exit: ProgramExit,
    error_output: &[u8],
) -> Option<ProgramExit> {
    if exit != ProgramExit::Code(i32::from(NO_PROGRAM)) {
        return None;
    }
    serde_json::from_slice(error_output.strip_prefix(token.as_bytes())?).ok()
}

/// This process dies with the guard, gains no privileges, cannot inspect others, and is the first that the system kills when
/// memory runs out.
#[cfg(target_os = "linux")]
fn bind(guard: &str) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A guard that died before that line would not be noticed.
    let parent = getppid().map(|parent| parent.as_raw_nonzero().to_string());
    if parent.as_deref() != Some(guard) {
        return Err(io::ErrorKind::NotFound.into());
    }
    // Executing a program with other privileges resets the parent death signal.
    rustix::thread::set_no_new_privs(true)?;
    drop_inspection_privileges();
    // The guard goes without huge pages to be small; its program need not. May be forbidden.
    let _ = rustix::thread::disable_transparent_huge_pages(false);
    // May be forbidden; then the system chooses.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn bind(_: &str) -> io::Result<()> {
    Ok(())
}

/// Sets the resource limits. The guard counts the processes instead: the system counts those of the
/// user in all programs and containers, so a program would fail for others.
fn set_limits(limits: &ProgramLimits) -> io::Result<()> {
    let maxima = [
        (Resource::Core, Some(0)),
        (Resource::Cpu, limits.cpu_s),
        (Resource::As, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.files),
    ];
    for (resource, maximum) in maxima {
        let Some(maximum) = maximum else { continue };
        // A limit cannot be raised above the current maximum.
        let maximum = getrlimit(resource)
            .maximum
            .map_or(maximum, |current| current.min(maximum));
        let limit = Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_failure_needs_the_token_and_the_exit_code() {
        let exit = ProgramExit::Code(127);
        let output = br#"token"missing_program""#;
        assert_eq!(
            exec_failure("token", exit, output),
            Some(ProgramExit::MissingProgram)
        );
        assert_eq!(exec_failure("other", exit, output), None);
        assert_eq!(exec_failure("token", ProgramExit::Code(1), output), None);
        assert_eq!(exec_failure("token", exit, b"sh: not found"), None);
        assert_eq!(exec_failure("token", exit, b"token"), None);
    }
}
