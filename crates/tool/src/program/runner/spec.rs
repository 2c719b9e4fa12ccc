//! A program that a tool wants to run.

use std::path::PathBuf;

use crate::program::guard::order::ProgramLimits;

/// A program for [`ProgramRunner::call`] or [`ProgramRunner::pipe`].
///
/// [`ProgramRunner::call`]: super::ProgramRunner::call
/// [`ProgramRunner::pipe`]: super::ProgramRunner::pipe
#[derive(Clone)]
pub struct ProgramSpec {
    /// The program, by name or absolute path.
    pub program: String,
    /// The arguments; there is no shell.
    pub args: Vec<String>,
    /// The environment besides `PATH`, `HOME`, `TMPDIR` and `LANG`; may contain secrets.
    pub env: Vec<(String, String)>,
    /// The working directory, which is also `HOME`.
    pub dir: PathBuf,
    /// The resource limits of each process and of the whole program.
    pub limits: ProgramLimits,
    /// The standard input of a call; empty if `None`.
    pub input: Option<String>,
    /// The output of a call; a program that writes more is ended.
    pub output_bytes_max: usize,
}

impl std::fmt::Debug for ProgramSpec {
    /// Without environment and input, which may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramSpec")
            .field("program", &self.program)
            .field("dir", &self.dir)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
