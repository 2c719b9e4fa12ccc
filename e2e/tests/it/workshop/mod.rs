//! Starts programs under guards of the real binary, for the process tests.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use turnwire_event::{Owner, SessionId, TenantId, Ulid};
use turnwire_fair::FairLimits;
use turnwire_testkit::server::binary;
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms, shell};
use turnwire_tool::ProgramRunner;
use turnwire_tool::guard::order::ProgramLimits;
use turnwire_tool::runner::{GuardedProgram, ProgramSpec};

/// Short, so that a test of a killing does not take long.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
/// Far beyond the grace, for a machine that does much else.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// One program at a time.
pub(crate) const ONE_AT_A_TIME: FairLimits = FairLimits {
    total: 1,
    per_owner: 1,
    waiting: 10,
    waiting_per_owner: 10,
};

/// The owner of all programs of a workshop.
pub(crate) fn owner() -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: "user-42".parse().expect("a principal"),
    }
}

/// A workshop in a folder of its own.
pub(crate) struct Shop {
    pub(crate) dir: TempDir,
    pub(crate) workshop: ProgramRunner,
}

impl Shop {
    pub(crate) fn open() -> Self {
        Self::with_grace(GRACE)
    }

    pub(crate) fn with_grace(grace: Duration) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let workshop = at(dir.path(), grace);
        Self { dir, workshop }
    }

    /// A program of `command` in the folder of a session.
    pub(crate) fn spec<T: AsRef<str>>(&self, command: &[T]) -> ProgramSpec {
        spec(&self.workshop, command)
    }

    /// A shell script as a program.
    pub(crate) fn script(&self, script: &str) -> ProgramSpec {
        self.spec(&["/bin/sh", "-c", script])
    }

    /// A program that is hard to end, set up and running.
    pub(crate) async fn programs(
        &self,
        programs: &StubbornPrograms,
        kind: StubbornKind,
    ) -> GuardedProgram {
        let spec = self.spec(&programs.command(kind));
        let guarded = self.workshop.call(&owner(), spec).await.expect("a guard");
        programs.until_ready(kind.processes()).await;
        guarded
    }

    /// One more script with the mark of `programs`, running.
    pub(crate) async fn written(
        &self,
        programs: &StubbornPrograms,
        script: &str,
    ) -> GuardedProgram {
        let spec = self.spec(&shell(&programs.write("own", script)));
        self.workshop.call(&owner(), spec).await.expect("a guard")
    }
}

/// A workshop in `dir`.
pub(crate) fn at(dir: &Path, grace: Duration) -> ProgramRunner {
    let guard = vec![binary().into(), OsString::from("__guard")];
    ProgramRunner::new(dir.join("work"), guard, grace)
}

/// A program of `command` in the folder of a session.
pub(crate) fn spec<T: AsRef<str>>(workshop: &ProgramRunner, command: &[T]) -> ProgramSpec {
    let (program, args) = command.split_first().expect("a program");
    ProgramSpec {
        program: program.as_ref().to_owned(),
        args: args.iter().map(|arg| arg.as_ref().to_owned()).collect(),
        env: Vec::new(),
        dir: workshop
            .folders
            .session(SessionId(Ulid(1)))
            .expect("a folder"),
        limits: ProgramLimits::default(),
        input: None,
        output_bytes_max: 100_000,
    }
}

/// What a process table says about `pid`, after its name: state, parent, group, session.
pub(crate) fn row(pid: u32) -> Option<Vec<String>> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, api) = line.rsplit_once(')')?;
    Some(api.split_whitespace().map(str::to_owned).collect())
}
